"""Files written whole or not at all: to a temporary file, synchronised, then renamed; digests reveal later damage.

    write_whole     a file of ours, such as those of a run: a link in its place is replaced, never followed
    write_output    a file that the user names: a device, a pipe or a link is written to, and stays what it is

Temporary files have names that nobody can guess, are created by the process that writes them and are locked while it
does. What a killed process left behind is not locked: the next file written to its folder removes it.
"""

import errno
import fcntl
import hashlib
import json
import math
import os
import re
import secrets
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from ckgconv.checks import InputError, check_instance, cut, require

PARTS = ".*.ckgconv.part"
STDOUT = 1
# What is read of a text file: the record of a run of a million epochs has about 150 MB.
MOST_BYTES = 2**28
# How deep values of a JSON file may be nested; a recipe inside a record needs 6.
MOST_DEPTH = 32
GROUPS = (dict, list)  # that JSON has
# Values of a JSON file, counted by commas and brackets: the record of a run of a million epochs has 7 million.
MOST_VALUES = 10**7
# Halves of characters, which JSON can write and no file can hold.
HALVES = re.compile(r"[\ud800-\udfff]")
# What follows every name of a group; texts may have it too.
AFTER_NAME = re.compile(r'"\s*:')


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file next to `path`, then rename it to `path`; on failure nothing has changed."""
    with _telling(path):
        check_names_file(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_left_behind(path.parent)
        part, held = _new_part(path.parent)
        with held:
            try:
                write(part)
                os.fsync(held.fileno())
                os.replace(part, path)
            finally:
                part.unlink(missing_ok=True)


def write_output(path: Path, write: Callable[[Path], object]) -> None:
    """As `write_whole`, but straight into what is neither a plain file nor absent, such as /dev/stdout."""
    with _telling(path):
        if not path.is_symlink() and (path.is_file() or path.is_dir() or not path.exists()):
            write_whole(path, write)
        elif is_stdout(path) and path.is_file():
            _append_to_stdout(write)
        else:
            write(path)


def is_stdout(path: Path) -> bool:
    """Whether a path names standard output, wherever that goes."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(STDOUT))
    return False


def check_names_file(path: Path) -> None:
    """Refuse the path of a folder."""
    with explaining_file_errors():
        require(path.name != "" and not path.is_dir(), f"{path} is a folder: name a file in it.")


def is_left_behind(path: Path) -> bool:
    """Whether a file is a temporary one, of this version or an earlier one."""
    return path.match(".*.part")


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_text(path: Path, remedy: str, most_bytes: int = MOST_BYTES) -> str:
    """The content of a text file; `remedy` ends the error message where it cannot be read."""
    try:
        # A pipe has no end, and one of these files is never a device.
        require(path.is_file() or not path.exists(), f"{path} cannot be read as text (it is no plain file): {remedy}")
        size = path.stat().st_size
        require(size <= most_bytes, f"{path} has {size:,} bytes, and at most {most_bytes:,} are read: {remedy}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = "it does not exist" if isinstance(error, FileNotFoundError) else type(error).__name__
        raise InputError(f"{path} cannot be read as text ({reason}): {remedy}") from error


def parse_json(text: str) -> Any:
    """The values of a JSON text; raises InputError with the reason, half a sentence, where there are none."""
    check_instance("it", text, str, "a text")
    count = sum(text.count(mark) for mark in ",[{")
    require(count <= MOST_VALUES, f"it has about {count:,} values, and at most {MOST_VALUES:,} are read")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:  # no JSON, a number of thousands of digits, nested too deep
        raise InputError(f"it is not JSON: {error}") from error
    inside, names = [values] if isinstance(values, GROUPS) else [], 0
    for _ in range(MOST_DEPTH):
        names += sum(len(each) for each in inside if isinstance(each, dict))
        groups = (each.values() if isinstance(each, dict) else each for each in inside)
        inside = [item for group in groups for item in group if isinstance(item, GROUPS)]
    require(not inside, f"its values are nested more than {MOST_DEPTH} deep")
    # Looking at every group takes twice as long as all the rest.
    if names != len(AFTER_NAME.findall(text)):
        json.loads(text, object_pairs_hook=_group)
    if "\\u" in text:
        require(not HALVES.search(json.dumps(values, ensure_ascii=False)), "it has half of a character")
    return values


def valid_json(values: Any, indent: int | None = None) -> str:
    """JSON that every parser reads: NaN and infinities, which JSON cannot represent, become null."""
    return json.dumps(_with_nulls(values), indent=indent, allow_nan=False)


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


@contextmanager
def explaining_file_errors() -> Iterator[None]:
    """Errors about files that nobody nearer has told of, such as a folder that may not be looked into, as sentences."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.ENOSPC and error.filename is None:
            raise InputError("The disk is full: what the command prints could not be written.") from error
        if error.errno is None or error.filename is None:  # of no file, such as a pipe whose reader has gone
            raise
        name = cut(" ".join(str(error.filename).split()))
        raise InputError(f"{name} cannot be used ({error.strerror}): check the path, and who may use it.") from error


def _group(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, of which a parser would keep the last of two values with the same name."""
    group = dict(pairs)
    if len(group) != len(pairs):
        (twice, _), *_ = Counter(name for name, _ in pairs).most_common(1)
        raise InputError(f"it has {twice[:60]!r} twice in one group")
    return group


@contextmanager
def _telling(path: Path) -> Iterator[None]:
    """Errors of the operating system as sentences."""
    try:
        yield
    except Exception as error:
        if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left" in str(error):
            raise InputError(
                f"The disk is full: {path} could not be written. Earlier files are intact; free some space and run the "
                f"command again, training with --resume."
            ) from error
        if isinstance(error, OSError):
            raise InputError(f"{path} could not be written ({error.strerror}): choose another folder.") from error
        raise


def _append_to_stdout(write: Callable[[Path], object]) -> None:
    """Write where standard output is in its file: opened by a path it would be emptied, and begin again."""
    with tempfile.TemporaryDirectory() as place:
        part = Path(place) / "output"
        write(part)
        sys.stdout.flush()
        with part.open("rb") as source, os.fdopen(os.dup(STDOUT), "wb") as target:
            shutil.copyfileobj(source, target)


def _new_part(folder: Path) -> tuple[Path, IO[bytes]]:
    """A temporary file, and the lock on it."""
    while True:
        part = folder / PARTS.replace("*", secrets.token_hex(8))
        held = part.open("xb")  # never through a link
        with suppress(OSError):  # a file system without locks
            fcntl.flock(held, fcntl.LOCK_EX)
        if part.exists():  # not taken, before it was locked, for one that was left behind
            return part, held
        held.close()


def _remove_left_behind(folder: Path) -> None:
    for part in folder.glob(PARTS):
        with suppress(OSError), os.fdopen(os.open(part, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            part.unlink()


def _with_nulls(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _with_nulls(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_with_nulls(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
