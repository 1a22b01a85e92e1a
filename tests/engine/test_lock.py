"""One process at a time in a folder."""

import os
import subprocess
import sys

import pytest

from ckgconv import InputError
from ckgconv.engine import lock
from ckgconv.engine.lock import holder_of, locked


def test_a_second_process_is_refused_and_a_third_may_follow(tmp_path):
    with locked(tmp_path / "c") as held:
        held.write(["one", "two"])
        holder = holder_of(tmp_path / "c")
        assert (holder.pid, holder.running) == (os.getpid(), ("one", "two"))
        with (
            pytest.raises(InputError, match=f"is being trained by process {os.getpid()} on .*: wait for it"),
            locked(tmp_path / "c"),
        ):
            pass
    assert holder_of(tmp_path / "c") is None
    with locked(tmp_path / "c"):
        pass


def test_what_a_killed_process_left_is_no_lock(tmp_path):
    program = (
        "import fcntl, os, signal, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX);"
        'print(\'{"pid": %d, "host": "here", "running": []}\' % os.getpid(), file=file, flush=True);'
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "lock")])
    assert killed.returncode == -9
    assert '"pid"' in (tmp_path / "lock").read_text()
    assert holder_of(tmp_path) is None
    with locked(tmp_path):
        pass


def test_a_worker_that_outlives_its_process_keeps_the_lock(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "PATIENCE", 0.2)
    with locked(tmp_path) as held:
        worker = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(held.file.fileno(),)
        )
    (tmp_path / "lock").write_text("")
    with pytest.raises(InputError, match="is being trained by process 0"), locked(tmp_path):
        pass
    worker.stdin.close()
    worker.wait()
    with locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_written_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"), locked(tmp_path / "file"):
        pass
    assert holder_of(tmp_path / "nowhere") is None


def test_a_holder_on_another_machine_is_taken_to_live(tmp_path):
    assert lock._alive(lock.Holder(1, "elsewhere"))
    assert not lock._alive(lock.Holder(2**22 + 1, lock.platform.node()))


def test_a_file_that_has_another_name_is_not_emptied(tmp_path):
    (tmp_path / "mine").write_text("precious")
    os.link(tmp_path / "mine", tmp_path / "lock")
    with pytest.raises(InputError, match="lock is no plain file of its own: remove it"), locked(tmp_path):
        pass
    assert (tmp_path / "mine").read_text() == "precious"
