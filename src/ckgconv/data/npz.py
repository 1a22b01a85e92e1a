"""Arrays of .npz files from anybody: headers first, then only what was asked for, and only if it fits.

A .npz file is a zip of .npy files, each a header (shape, dtype, order) and its values. A header may claim petabytes,
and a few megabytes of deflated zeros unpack to gigabytes. So the headers of all wanted arrays are read and compared
with the sizes in the zip directory, with limits, and by the caller with each other, before any value is. Other members
are never unpacked. Python objects are refused: numpy would unpickle them.
"""

import math
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.lib import format as npy
from numpy.typing import NDArray

from ckgconv.checks import InputError, require
from ckgconv.files import explaining_file_errors
from ckgconv.pairs.memory import free_bytes

Array = NDArray[Any]
MOST_MEMBERS = 1000
MOST_DIMENSIONS = 8
# Real arrays of this size are never as regular as the zeros of a bomb.
LARGE, MOST_RATIO = 2**28, 200
BLOCK = 2**18  # larger ones are slower: each is a new piece of memory
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
ENCRYPTED = 0x1


@dataclass(frozen=True)
class Header:
    """What an array claims to be."""

    shape: tuple[int, ...]
    dtype: "np.dtype[Any]"
    fortran: bool = False

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npz(
    path: Path, names: Iterable[str], check: Callable[[Mapping[str, Header]], None] = lambda headers: None
) -> dict[str, Array]:
    """The arrays of these names that a file has; `check` sees all their headers before any values are read."""
    with explaining_file_errors():
        require(path.exists(), f"{path} is not a packed data set, since it does not exist: check the path.")
        require(path.is_file(), f"{path} is not a packed data set, but a folder or a device: give a .npz file.")
    try:
        with ExitStack() as opened:
            archive = opened.enter_context(zipfile.ZipFile(path))
            members = _members(archive, names)
            streams = {name: opened.enter_context(archive.open(info)) for name, info in members.items()}
            headers = {name: _header(name, stream, members[name]) for name, stream in streams.items()}
            _check_memory(headers)
            check(headers)
            return {name: _values(name, streams[name], header) for name, header in headers.items()}
    except InputError as error:
        raise InputError(f"{path} is not a packed data set that can be read. {error}") from error
    except MemoryError as error:
        raise InputError(f"{path} does not fit into memory: split it into smaller files.") from error
    except Exception as error:  # whatever zipfile, zlib and numpy make of damaged bytes
        raise InputError(
            f"{path} is not a packed data set ({type(error).__name__}): give a .npz file in the packed format."
        ) from error


def _members(archive: zipfile.ZipFile, names: Iterable[str]) -> dict[str, zipfile.ZipInfo]:
    """The wanted members, by the name of their array."""
    listed = archive.infolist()
    require(len(listed) <= MOST_MEMBERS, f"It has {len(listed):,} members: a packed data set has a few arrays.")
    wanted = {f"{name}.npy": name for name in names}
    members: dict[str, zipfile.ZipInfo] = {}
    for info in listed:
        require(not info.comment, "Its list of members has comments, or is damaged: write it by save_packed.")
        name = wanted.get(info.filename)
        if name is None:
            # Its name stands at its beginning, too: one that was damaged in the list would be an array left out.
            archive.open(info).close()
            continue
        require(name not in members, f"It has two arrays {name}: give one.")
        readable = info.compress_type in METHODS and not info.flag_bits & ENCRYPTED
        require(readable, f"{name} is encrypted or compressed by another method than deflate: write it by save_packed.")
        members[name] = info
    return members


def _header(name: str, stream: IO[bytes], info: zipfile.ZipInfo) -> Header:
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    require(read is not None, f"{name} is of version {version} of the .npy format: write it by numpy.savez.")
    assert read is not None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about headers of Python 2
        shape, fortran, dtype = read(stream)
    require(
        dtype.kind in "biuf" and dtype.itemsize <= 8,
        f"{name} has dtype {dtype}: give numbers of at most 64 bits, no objects, text or complex values.",
    )
    require(
        len(shape) <= MOST_DIMENSIONS and min(shape, default=0) >= 0, f"{name} has shape {list(shape)}: not an array."
    )
    header = Header(shape, dtype, fortran)
    stored = info.file_size - stream.tell()
    require(
        header.nbytes == stored,
        f"The header of {name} claims {header.nbytes:,} bytes, but there are {stored:,}: the file is damaged.",
    )
    require(
        header.nbytes < LARGE or header.nbytes <= MOST_RATIO * info.compress_size,
        f"{name} unpacks from {info.compress_size:,} to {header.nbytes:,} bytes, as no real data does: not unpacked.",
    )
    return header


def _check_memory(headers: Mapping[str, Header]) -> None:
    needed = sum(header.nbytes for header in headers.values())
    if needed < LARGE:
        return
    free = free_bytes(torch.device("cpu"))
    require(
        free is None or needed <= free / 2,
        f"Its arrays need {needed / 1e9:,.1f} GB, and {(free or 0) / 1e9:,.1f} GB are free: split the file.",
    )


def _values(name: str, stream: IO[bytes], header: Header) -> Array:
    """The values of an array in the byte order of this machine."""
    flat = np.empty(math.prod(header.shape), header.dtype)
    filled, view = 0, flat.view(np.uint8).data
    while filled < len(view):
        block = stream.read(min(BLOCK, len(view) - filled))
        require(len(block) > 0, f"{name} ends early: the file is damaged.")
        view[filled : filled + len(block)] = block
        filled += len(block)
    array = flat.reshape(header.shape, order="F" if header.fortran else "C")
    return np.asarray(array, dtype=header.dtype.newbyteorder("="), order="C")
