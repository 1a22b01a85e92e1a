"""Archives from the network: fetched with a limit on their size, checked by digest, unpacked file by file.

Nothing that a server sends is trusted: an archive whose digest is published must have it; of any other, the SHA-256 of
the first download that could be read is kept in the data folder, and a later one must have the same. Members are read
by their exact names, so no name in an archive becomes a path.
"""

import gzip
import hashlib
import json
import urllib.parse
import urllib.request
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ckgconv.checks import InputError, require
from ckgconv.files import parse_json, read_text, write_text

SECONDS = 60  # of silence, after which a server is given up
BLOCK = 2**20
# In the data folder: SHA-256 of archives without a published digest, by name.
SEEN = "official-sha256.json"


@dataclass(frozen=True)
class Archive:
    """A file on a server."""

    name: str
    url: str
    most_bytes: int
    md5: str | None = None  # as published; None where none is


def fetch(archive: Archive, folder: Path, data_folder: Path) -> Path:
    """Download an archive into `folder`, and refuse any other than the one that belongs in `data_folder`."""
    path = folder / archive.name
    try:
        # Addresses come from the catalogue, never from a user.
        with urllib.request.urlopen(archive.url, timeout=SECONDS) as response, path.open("wb") as file:  # nosec B310
            same = urllib.parse.urlsplit(response.geturl()).scheme == urllib.parse.urlsplit(archive.url).scheme
            require(same, f"{archive.url} was redirected to {response.geturl()}, which is not encrypted: not followed.")
            _copy(response, file, archive.most_bytes, archive.name)
    except (OSError, ValueError, zlib.error) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{archive.url} could not be downloaded ({type(error).__name__}: {error}).") from error
    _check_digest(archive, path, data_folder / SEEN)
    return path


def member(path: Path, name: str, folder: Path, most_bytes: int) -> Path:
    """Unpack one member of a zip archive into `folder`."""
    target = folder / Path(name).name
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as source, target.open("wb") as file:
            _copy(source, file, most_bytes, name)
    except (OSError, KeyError, EOFError, RuntimeError, NotImplementedError, zipfile.BadZipFile, zlib.error) as error:
        raise InputError(f"{path.name} cannot be unpacked: {name} ({type(error).__name__}).") from error
    return target


def gunzip(path: Path, folder: Path, most_bytes: int) -> Path:
    """Unpack a .gz file into `folder`."""
    target = folder / path.name.removesuffix(".gz")
    try:
        with gzip.open(path) as source, target.open("wb") as file:
            _copy(source, file, most_bytes, path.name)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path.name} cannot be unpacked ({type(error).__name__}).") from error
    return target


def _copy(source: IO[bytes] | gzip.GzipFile, file: IO[bytes], most_bytes: int, name: str) -> None:
    size = 0
    while block := source.read(BLOCK):
        size += len(block)
        require(size <= most_bytes, f"{name} is larger than {most_bytes:,} bytes, which it should not be: not read.")
        file.write(block)


def _check_digest(archive: Archive, path: Path, seen: Path) -> None:
    digest = _digest(path, "sha256" if archive.md5 is None else "md5")
    known = _known(seen)
    expected = known.get(archive.name, digest) if archive.md5 is None else archive.md5
    require(
        digest == expected,
        f"{archive.name} from {archive.url} has the digest {digest}, not {expected}: the file was damaged or exchanged."
        + ("" if archive.md5 else f" If its source has published another one, remove {seen}."),
    )


def remember(archives: Sequence[Archive], paths: Sequence[Path], data_folder: Path) -> None:
    """Keep the digests of archives that could be read; later downloads must match them."""
    known = _known(data_folder / SEEN)
    pairs = zip(archives, paths, strict=True)
    found = {each.name: _digest(path, "sha256") for each, path in pairs if each.md5 is None}
    if found.keys() - known.keys():
        write_text(data_folder / SEEN, json.dumps(found | known, indent=2) + "\n")


def _known(seen: Path) -> dict[str, str]:
    if not seen.exists():
        return {}
    remedy = "remove it."
    try:
        known = parse_json(read_text(seen, remedy))
    except InputError as error:
        raise InputError(f"{seen} is damaged ({error}): {remedy}") from error
    require(isinstance(known, dict), f"{seen} is not a table of digests: {remedy}")
    return {str(name): str(value) for name, value in known.items()}


def _digest(path: Path, algorithm: str) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.new(algorithm, usedforsecurity=False)).hexdigest()
