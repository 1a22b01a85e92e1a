"""Lines of a text file that a user names, plain or compressed with gzip, within limits on its size.

A plain file is measured before it is read. A .gz may lie about the size of its content, so bytes are counted while it
is read, and reading ends at the limit.
"""

import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from ckgconv.checks import InputError, require
from ckgconv.files import explaining_file_errors

MOST_BYTES = 2**30
# A million rows that differ in their numbers alone are compressed to a twentieth.
LARGE, MOST_RATIO = 2**24, 200
# The header of a table of 100,000 columns has about a million letters.
MOST_LETTERS = 2**26
# Byte order marks of what spreadsheets save as "Unicode text".
UTF16 = (b"\xff\xfe", b"\xfe\xff")


class Counted(io.RawIOBase):
    """A binary stream that raises once it is longer than allowed, or more regular than any table is."""

    def __init__(self, source: IO[bytes], path: Path, compressed: int) -> None:
        super().__init__()
        self.source, self.path, self.compressed, self.size = source, path, compressed, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray) -> int:  # type: ignore[override]
        block = self.source.read(len(buffer))
        self.size += len(block)
        require(
            self.size <= MOST_BYTES,
            f"{self.path} unpacks to more than {MOST_BYTES:,} bytes: give it in several files.",
        )
        require(
            self.size <= LARGE or self.size <= MOST_RATIO * self.compressed,
            f"{self.path} unpacks from {self.compressed:,} to more than {LARGE:,} bytes, as no real table does.",
        )
        buffer[: len(block)] = block
        return len(block)


@contextmanager
def opened(path: Path, what: str, errors: str = "strict") -> Iterator[IO[str]]:
    """A text file in UTF-8, with or without a byte order mark; line ends as they are.

    `what` it should be: "a CSV"; `errors` as `open` takes it: what happens to bytes that are no UTF-8.
    """
    with explaining_file_errors():
        require(path.exists(), f"{path} does not exist: give {what}.")
        require(path.is_file(), f"{path} is a folder or a device: give {what}.")
    try:
        with (
            _binary(path) as binary,
            io.TextIOWrapper(binary, encoding="utf-8-sig", errors=errors, newline="") as text,
        ):
            require(binary.peek(2)[:2] not in UTF16, f"{path} is text in UTF-16: save it as {what} in UTF-8.")
            yield text
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(
            f"{path} cannot be read as {what} ({error}): give a text file in UTF-8, with each quote closed."
        ) from error


def lines_of(text: IO[str], path: Path) -> Iterator[str]:
    """Lines with their ends, each within a limit."""
    number = 0
    while line := text.readline(MOST_LETTERS):
        number += 1
        require(len(line) < MOST_LETTERS, f"Line {number} of {path} has more than {MOST_LETTERS:,} letters: divide it.")
        yield line


@contextmanager
def _binary(path: Path) -> Iterator[io.BufferedReader]:
    with path.open("rb") as file:
        size = path.stat().st_size
        require(size <= MOST_BYTES, f"{path} has {size:,} bytes: give at most {MOST_BYTES:,}, in several files.")
        if path.suffix.lower() == ".gz":
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield io.BufferedReader(Counted(unpacked, path, size), 2**16)  # type: ignore[arg-type]
        else:
            yield file
