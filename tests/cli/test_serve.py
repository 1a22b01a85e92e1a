"""`ckgconv serve`: what it refuses, how it starts, and how it ends; covers `ckgconv.serve.server`."""

import os
import re
import signal
import socket
import subprocess
import sys
import threading

import httpx
import pytest

from ckgconv.checks import InputError
from ckgconv.serve import server
from ckgconv.serve.server import address_of, bound, own_names

START = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\nfrom ckgconv.cli import main; main()"


def started(*arguments):
    """A server, and its address, as soon as it has told it."""
    command = [sys.executable, "-c", START, "serve", *arguments, "--port", "0", "--device", "cpu", "--workers", "1"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    line = process.stdout.readline()
    found = re.fullmatch(r"zinc at (http://\S+) · Ctrl-C ends it\n", line)
    assert found, line + process.stderr.read()
    return process, found[1]


def test_it_answers_and_ends_when_it_is_interrupted():
    process, address = started("zinc", "--host", "0.0.0.0", "--name", "lab.example")
    warning = process.stdout.readline()
    assert warning.startswith("Warning: 0.0.0.0 is reached from other machines, without a password")
    address = address.replace("0.0.0.0", "127.0.0.1")
    found = httpx.post(f"{address}/api/predict", json={"smiles": ["CCO"]}, timeout=120).json()
    assert found["molecules"][0]["predictions"]
    assert httpx.get(address, headers={"host": "lab.example"}).status_code == 200
    assert httpx.get(address, headers={"host": "other.example"}).status_code == 421
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (0, "The server has ended.\n", "")
    with pytest.raises(httpx.ConnectError):
        httpx.get(address)


def test_wrong_input_is_a_sentence(ckgconv, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for arguments, sentence in (
            (["zinc", "--port", port], f"The server cannot listen at 127.0.0.1 port {port} (Address already in use)"),
            (["zinc", "--host", "no.such.host.invalid"], "The server cannot listen at no.such.host.invalid port 8000"),
            (["zinc", "--host", "192.0.2.1"], "choose another with --host and --port."),
            (["nowhere"], "nowhere is not a folder: give the folder of a run"),
            (["zinc", "zinc"], "was given twice: give each run once."),
            (["zinc", "--device", "tpu"], "device is 'tpu': choose one of auto, cpu, cuda."),
        ):
            code, _, err = ckgconv("serve", *arguments)
            assert (code, sentence in err, "Traceback" in err) == (2, True, False), err
    assert ckgconv("serve", "zinc", "--port", "70000")[0] == 2
    assert ckgconv("serve")[0] == 2


def test_a_missing_extra_is_a_sentence(ckgconv, monkeypatch):
    for name in [each for each in sys.modules if each.startswith(("ckgconv.serve.", "uvicorn"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    code, _, err = ckgconv("serve", "zinc")
    assert code == 2
    assert "The server needs uvicorn, which is not installed: run pip install 'ckgconv[serve]'." in err


def test_sockets_and_names():
    with bound("127.0.0.1", 0) as listening:
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+", address_of(listening))
        with pytest.raises(InputError, match="cannot listen"), bound("127.0.0.1", listening.getsockname()[1]):
            pass
    if socket.has_ipv6:
        try:
            with bound("::1", 0) as listening:
                assert address_of(listening).startswith("http://[::1]:")
        except InputError:
            pass  # a machine without a local address of this kind
    assert {"localhost", "lab.example"} <= own_names(["Lab.Example"])


def test_it_serves_in_this_process_too(monkeypatch):
    """The whole function, with a server that ends at once and workers that are none."""

    class Ends(server.Server):
        async def main_loop(self):
            assert signal.getsignal(signal.SIGTERM) == self._end
            self._end(signal.SIGTERM, None)

    class Closed:
        def __init__(self, opens, limits):
            assert limits.workers == 2

        def close(self):
            told.append("closed")

    monkeypatch.setattr(server, "Server", Ends)
    monkeypatch.setattr(server, "Pool", Closed)
    before, told = signal.getsignal(signal.SIGTERM), []
    assert threading.current_thread() is threading.main_thread()
    server.serve(["zinc"], "127.0.0.1", 0, device="cpu", tell=told.append)
    assert told[1:] == ["closed", "The server has ended."]
    assert signal.getsignal(signal.SIGTERM) == before
