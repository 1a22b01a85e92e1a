"""Files are written whole or not at all, nothing else is touched, and what a killed process left is removed."""

import errno
import fcntl
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ckgconv import InputError
from ckgconv.files import (
    PARTS,
    explaining_file_errors,
    parse_json,
    read_text,
    write_output,
    write_text,
    write_whole,
)


def text(words):
    return lambda path: path.write_text(words)


def test_a_link_in_the_place_of_a_file_is_replaced_and_what_it_names_is_not_touched(tmp_path):
    (tmp_path / "secret").write_text("mine")
    (tmp_path / "best.json").symlink_to(tmp_path / "secret")
    write_text(tmp_path / "best.json", "{}")
    assert (tmp_path / "secret").read_text() == "mine"
    assert not (tmp_path / "best.json").is_symlink()


def test_output_goes_through_a_link(tmp_path):
    (tmp_path / "out.csv").symlink_to(tmp_path / "elsewhere.csv")
    write_output(tmp_path / "out.csv", text("a,b"))
    assert (tmp_path / "out.csv").is_symlink()
    assert (tmp_path / "elsewhere.csv").read_text() == "a,b"


def test_a_pipe_is_written_to_and_stays_a_pipe(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE, text=True) as reader:
        write_output(pipe, text("a,b"))
        assert reader.communicate()[0] == "a,b"
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_stays_a_device(tmp_path):
    device = tmp_path / "null"
    os.mknod(device, 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    write_output(device, text("a,b"))
    assert stat.S_ISCHR(device.stat().st_mode)


WRITES = """
from pathlib import Path
from ckgconv.files import write_output
print("before", flush=True)
write_output(Path("/dev/stdout"), lambda part: part.write_text("a,b\\n"))
print("after")
"""


@pytest.mark.parametrize("mode", ["w", "a"])
def test_standard_output_in_a_file_loses_nothing(tmp_path, mode):
    file = tmp_path / "out"
    file.write_text("earlier\n")
    with file.open(mode) as out:
        subprocess.run([sys.executable, "-c", WRITES], stdout=out, check=True)
    assert file.read_text() == ("earlier\n" if mode == "a" else "") + "before\na,b\nafter\n"


@pytest.mark.parametrize("write", [write_whole, write_output])
@pytest.mark.parametrize("path", [Path(""), Path("."), Path(".."), Path("folder")])
def test_a_folder_is_no_file(tmp_path, monkeypatch, write, path):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    with pytest.raises(InputError, match="is a folder: name a file in it"):
        write(path, text("a"))


def test_a_full_device_is_told(tmp_path):
    with pytest.raises(InputError, match="The disk is full: /dev/full could not be written"):
        write_output(Path("/dev/full"), text("a"))


def test_names_of_temporary_files_cannot_be_guessed_and_links_are_not_followed(tmp_path, monkeypatch):
    seen = []

    def write(part):
        seen.append(part)
        assert part.stat().st_size == 0
        assert oct(part.stat().st_mode & 0o777) == oct(0o666 & ~umask)
        part.write_text("a")

    umask = os.umask(0o022)
    os.umask(umask)
    write_whole(tmp_path / "a", write)
    write_whole(tmp_path / "a", write)
    assert seen[0].name != seen[1].name
    (tmp_path / "victim").write_text("mine")
    monkeypatch.setattr("ckgconv.files.secrets.token_hex", lambda size: "known")
    (tmp_path / PARTS.replace("*", "known")).symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match=r"could not be written \(File exists\)"):
        write_whole(tmp_path / "a", write)
    assert (tmp_path / "victim").read_text() == "mine"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, ValueError])
def test_nothing_is_left_however_a_write_ends(tmp_path, error):
    def breaks(part):
        part.write_text("half")
        raise error

    (tmp_path / "a").write_text("before")
    with pytest.raises(error):
        write_whole(tmp_path / "a", breaks)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "before"}


def test_what_a_killed_process_left_is_removed_and_what_another_writes_is_not(tmp_path):
    program = (
        "import os, signal, sys; from pathlib import Path; from ckgconv.files import write_whole\n"
        "write_whole(Path(sys.argv[1]), lambda part: os.kill(os.getpid(), signal.SIGKILL))"
    )
    killed = subprocess.run([sys.executable, "-c", program, str(tmp_path / "b")])
    assert killed.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob(PARTS))) == 1
    busy = tmp_path / PARTS.replace("*", "busy")
    with busy.open("xb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write_whole(tmp_path / "a", text("whole"))
        assert {path.name for path in tmp_path.iterdir()} == {"a", busy.name}


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        ('{"seed": 0, "seed": 1}', "it has 'seed' twice in one group"),
        ('{"a": {"b": [{"c": 1, "c": 1}]}}', "it has 'c' twice in one group"),
        ('{"name": "\\ud800"}', "it has half of a character"),
        ('{"\\udfff": 1}', "it has half of a character"),
        ("[" * 33 + "]" * 33, "its values are nested more than 32 deep"),
        ("[" * 100_000, "it is not JSON"),
        ("1" * 5000, "it is not JSON"),
        ("{'a': 1}", "it is not JSON"),
        ("[" + "0," * 10**7 + "0]", "it has about 10,000,001 values, and at most 10,000,000 are read"),
    ],
    ids=lambda text: text[:20],
)
def test_json_that_is_read_in_two_ways_or_not_at_all_is_refused(damaged, reason):
    with pytest.raises(InputError) as caught:
        parse_json(damaged)
    assert str(caught.value).startswith(reason)


def test_whole_characters_and_undefined_numbers_are_read():
    assert parse_json('["\\ud83d\\ude00", "ä", 1' + "0" * 400 + "]") == ["😀", "ä", 10**400]
    assert str(parse_json("[NaN, -Infinity]")) == "[nan, -inf]"


def test_a_text_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(InputError, match=r"gone.json cannot be read as text \(it does not exist\): give another"):
        read_text(tmp_path / "gone.json", "give another.")


# As a folder that may not be looked into, but for root, too.
TOO_LONG = Path("x" * 300, "file")


@pytest.mark.parametrize("write", [write_whole, write_output])
def test_a_path_that_cannot_be_looked_at_is_no_traceback(tmp_path, write):
    with pytest.raises(InputError, match=r"could not be written|cannot be used"):
        write(tmp_path / TOO_LONG, text(""))


def test_errors_about_files_are_told_and_others_are_not():
    with (
        pytest.raises(InputError, match=r"^a b cannot be used .Permission denied.: check the path"),
        explaining_file_errors(),
    ):
        raise PermissionError(errno.EACCES, "Permission denied", "a\nb")
    with pytest.raises(InputError, match=r"^The disk is full"), explaining_file_errors():
        raise OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(BrokenPipeError), explaining_file_errors():
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")
