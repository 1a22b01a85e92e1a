"""A case in a process of its own, with limits on its time and memory; what came of it, in a word."""

import os
import resource
import signal
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from ckgconv import InputError

# Of the processor; what waits without computing is ended after ten times as long, since the machine may be busy.
SECONDS, BYTES = 60, 4 * 2**30


def outcome_of(case: Callable[[], object], log: Path) -> str:
    """ "done", "refused", "failed", "stopped by SIGNAL" or "too slow"; `log` gets the sentence or the traceback."""
    pid = os.fork()
    if pid == 0:
        _run(case, log)
    until = time.monotonic() + 10 * SECONDS
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > until:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return "too slow"
        time.sleep(0.005)
    if os.WIFSIGNALED(status):
        if os.WTERMSIG(status) == signal.SIGXCPU:
            return "too slow"
        return f"stopped by {signal.Signals(os.WTERMSIG(status)).name}"
    return {0: "done", 2: "refused"}.get(os.WEXITSTATUS(status), "failed")


def _run(case: Callable[[], object], log: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 5))
    resource.setrlimit(resource.RLIMIT_AS, (_mapped() + BYTES, resource.RLIM_INFINITY))
    code = 1
    try:
        case()
        code = 0
    except InputError as error:
        log.write_text(f"{error}\n", encoding="utf-8", errors="backslashreplace")
        code = 2
    except BaseException:
        log.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
    finally:
        os._exit(code)


def _mapped() -> int:
    """Bytes of address space that this process has already."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
