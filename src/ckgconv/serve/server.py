"""The server: its socket, its processes, and how it ends.

SIGINT and SIGTERM end it after the requests that are being answered, for a few seconds at most.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FrameType

import uvicorn

from ckgconv.checks import InputError
from ckgconv.serve.app import make_app
from ckgconv.serve.guard import Guard
from ckgconv.serve.limits import Limits
from ckgconv.serve.network import Network
from ckgconv.serve.pool import Pool
from ckgconv.serve.worker import open_network

LOCAL = ("127.0.0.1", "::1", "localhost")
# Seconds for answers that are being written when the server is told to end.
GRACE = 3
CONNECTIONS = 128


def serve(
    folders: Sequence[str],
    host: str,
    port: int,
    names: Sequence[str] = (),
    device: str = "auto",
    limits: Limits | None = None,
    tell: Callable[[str], None] = print,
) -> None:
    """Serve one run, or several as an ensemble, until a signal ends it."""
    limits = limits or Limits()
    about = Network(folders, device, limits.atoms).about()
    with bound(host, port) as listening:
        threads = max(1, (os.cpu_count() or 1) // limits.workers)
        pool = Pool(partial(open_network, tuple(folders), device, limits.atoms, threads), limits)
        try:
            guard = Guard(make_app(pool, about, limits), limits, own_names(names))
            tell(f"{about['name']} at {address_of(listening)} · Ctrl-C ends it")
            if host not in LOCAL:
                tell(
                    f"Warning: {host} is reached from other machines, without a password or encryption: everyone in "
                    f"this network can use the page."
                )
            server = Server(
                uvicorn.Config(
                    guard,
                    log_level="error",
                    access_log=False,
                    server_header=False,
                    proxy_headers=False,
                    lifespan="off",
                    ws="none",
                    limit_concurrency=CONNECTIONS,
                    timeout_graceful_shutdown=GRACE,
                )
            )
            server.run(sockets=[listening])
        finally:
            pool.close()
    tell("The server has ended.")


@contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens at an address; port 0 finds a free one."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][0]
        listening = socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        number = getattr(error, "errno", None) or 0
        reason = os.strerror(number) if number > 0 else str(error)  # those of unknown hosts are negative
        raise InputError(
            f"The server cannot listen at {host} port {port} ({reason}): choose another with --host and --port."
        ) from error
    with listening:
        yield listening


def address_of(listening: socket.socket) -> str:
    """What to type into a browser."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def own_names(names: Sequence[str]) -> frozenset[str]:
    """Host names of this machine, and those that the user gives."""
    return frozenset(name.lower() for name in ("localhost", socket.gethostname(), *names) if name)


class Server(uvicorn.Server):
    """Ends on a signal with exit code 0; uvicorn's own raises the signal once more."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self._end) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _end(self, number: int, frame: FrameType | None) -> None:
        self.handle_exit(number, frame)
