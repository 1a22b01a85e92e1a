"""Pickled plain data without pickle: numbers, text, lists, dictionaries and arrays, and nothing that could run.

The official archives of several benchmarks are pickles, and unpickling runs whatever code a file names. Here the
opcodes are taken apart by the standard library's disassembler, which executes nothing, and interpreted one by one. A
name in the file is looked up in a closed table of constructors for arrays; any other name or opcode is refused.

    torch.save, since 1.6     a zip with data.pkl and one record per storage
    torch.save, before        five pickles (magic number, version, system, object, keys), then the storages
    pickle.dump               one pickle; a tensor in it holds its storage as the bytes of the form before
"""

import io
import math
import pickletools  # nosec B403
import struct
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ckgconv.checks import InputError, require

Array = NDArray[Any]
# (type of storage, key, number of elements) → the elements [n].
Storages = Callable[[np.dtype[Any], str, int], Array]
MARK = object()
LEGACY_HEADERS = 3  # pickles before the object: magic number, version, system
SIMPLE = {
    *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT", "STRING", "BINSTRING"),
    *("SHORT_BINSTRING", "UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINBYTES", "SHORT_BINBYTES"),
    *("BINBYTES8", "BYTEARRAY8"),
}
CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_LIST": list,
    "EMPTY_DICT": dict,
    "EMPTY_TUPLE": tuple,
    "MARK": lambda: MARK,
}


@dataclass
class NumpyArray:
    """A numpy array, whose values follow its construction."""

    values: Array | None = None

    def build(self, state: Any) -> None:
        _, shape, dtype, fortran, data = state
        flat = np.frombuffer(_bytes(data), dtype=dtype.numpy())
        self.values = flat.reshape(shape, order="F" if fortran else "C")


@dataclass
class NumpyType:
    """A dtype of numbers, whose byte order follows its construction."""

    name: str
    order: Literal["<", ">", "="] = "="

    def build(self, state: Any) -> None:
        self.order = ">" if state[1] == ">" else "<" if state[1] == "<" else "="

    def numpy(self) -> "np.dtype[Any]":
        if self.name not in NUMBERS:
            raise InputError(f"An array has the type {self.name!r}, which is not one of numbers.")
        return np.dtype(self.name).newbyteorder(self.order)


def read_pickle(data: bytes) -> Any:
    """The object of one pickle."""
    return _interpret(io.BytesIO(data), _no_storages)


def read_torch(path: Path) -> Any:
    """The object of a file that `torch.save` wrote; tensors become numpy arrays."""
    try:
        return _read_zip(path) if zipfile.is_zipfile(path) else _read_legacy(path.read_bytes())
    except InputError:
        raise
    except Exception as error:  # whatever zipfile makes of damaged bytes
        raise InputError(f"{path.name} is damaged ({type(error).__name__}).") from error


def _read_zip(path: Path) -> Any:
    size = path.stat().st_size
    with zipfile.ZipFile(path) as archive:

        def record(name: str) -> bytes:
            # torch.save does not compress, so no record is larger than the file.
            claimed = archive.getinfo(name).file_size
            require(claimed <= size, f"{path.name} claims {claimed:,} bytes for {name!r}, but has {size:,} in all.")
            return archive.read(name)

        program = next((name for name in archive.namelist() if name.endswith("/data.pkl")), None)
        if program is None:
            raise InputError(f"{path.name} holds no data.pkl.")
        folder = program.removesuffix("data.pkl") + "data/"

        def storage(dtype: "np.dtype[Any]", key: str, count: int) -> Array:
            return _elements(record(folder + key), dtype, count)

        return _interpret(io.BytesIO(record(program)), _kept(storage))


def array_of(value: Any) -> Array:
    """A value of the file as an array of numbers."""
    if isinstance(value, NumpyArray):
        value = value.values
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise InputError(f"The archive has a {type(value).__name__} where an array of numbers belongs.")
    return array


def _read_legacy(data: bytes) -> Any:
    """The object of the form before 1.6: storages follow the pickles, so their places are needed first."""
    file = io.BytesIO(data)
    for _ in range(LEGACY_HEADERS):
        _interpret(file, _no_storages)
    start = file.tell()
    wanted: dict[str, tuple[np.dtype[Any], int]] = {}

    def note(dtype: "np.dtype[Any]", key: str, count: int) -> Array:
        wanted[key] = (dtype, count)
        return np.broadcast_to(np.zeros((), dtype), count)  # filled in below, where the values are read

    _interpret(file, note)
    found: dict[str, Array] = {}
    for key in _interpret(file, _no_storages):
        dtype, count = wanted[str(key)]
        (stored,) = struct.unpack("<q", file.read(8))
        found[str(key)] = _elements(file.read(max(0, stored) * dtype.itemsize), dtype, count)
    file.seek(start)
    return _interpret(file, lambda dtype, key, count: found[key])


def _interpret(file: io.BytesIO, storages: Storages) -> Any:
    """The object of the pickle at the place of a file, which is left behind it."""
    try:
        return _Machine(storages).run(pickletools.genops(file))
    except InputError:
        raise
    except Exception as error:  # whatever a damaged pickle makes of the stack
        raise InputError(f"A pickle is damaged or holds more than plain data ({type(error).__name__}).") from error


class _Machine:
    """The stack and the memo of an unpickler."""

    def __init__(self, storages: Storages) -> None:
        self.storages = storages
        self.stack: list[Any] = []
        self.memo: dict[int, Any] = {}

    def run(self, operations: Iterator[tuple[Any, Any, int | None]]) -> Any:
        for operation, argument, _ in operations:
            name: str = operation.name
            if name in SIMPLE:
                self.stack.append(argument)
            elif name in CONSTANTS:
                self.stack.append(CONSTANTS[name]())
            elif name in ("PROTO", "FRAME"):
                continue
            elif name == "STOP":
                return self.stack.pop()
            else:
                self.step(name, argument)
        raise InputError("A pickle has no end.")

    def step(self, name: str, argument: Any) -> None:
        stack = self.stack
        if name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self.memo[int(argument)] = stack[-1]
        elif name == "MEMOIZE":
            self.memo[len(self.memo)] = stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            stack.append(self.memo[int(argument)])
        elif name in ("TUPLE1", "TUPLE2", "TUPLE3"):
            count = int(name[-1])
            stack[-count:] = [tuple(stack[-count:])]
        elif name == "TUPLE":
            stack.append(tuple(self.to_mark()))
        elif name in ("APPEND", "SETITEM"):
            self.fill([stack.pop()] if name == "APPEND" else [stack.pop(-2), stack.pop()])
        elif name in ("APPENDS", "SETITEMS"):
            self.fill(self.to_mark())
        elif name == "LIST":
            stack.append(self.to_mark())
        elif name == "DICT":
            items = self.to_mark()
            stack.append(dict(zip(items[::2], items[1::2], strict=True)))
        else:
            self.construct(name, argument)

    def construct(self, name: str, argument: Any) -> None:
        """Names and what they are applied to."""
        stack = self.stack
        if name == "GLOBAL":
            stack.append(_named(*argument.split(" ", 1)))
        elif name == "STACK_GLOBAL":
            last = stack.pop()
            stack.append(_named(stack.pop(), last))
        elif name == "REDUCE":
            arguments = stack.pop()
            stack.append(stack.pop()(*arguments))
        elif name == "BUILD":
            state = stack.pop()
            if isinstance(stack[-1], NumpyArray | NumpyType):
                stack[-1].build(state)
            elif state:
                raise InputError("A pickle gives attributes to an object that has none.")
        elif name == "BINPERSID":
            kind, dtype, key, _, count, *_ = stack.pop()
            if kind != "storage" or not isinstance(dtype, _StorageType):
                raise InputError("A pickle refers to something outside it that is not a storage.")
            stack.append(self.storages(dtype.dtype, str(key), int(count)))
        else:
            raise InputError(f"A pickle has the operation {name}, which plain data does not need.")

    def to_mark(self) -> list[Any]:
        """What was pushed since the last mark."""
        items: list[Any] = []
        while (item := self.stack.pop()) is not MARK:
            items.append(item)
        return items[::-1]

    def fill(self, items: list[Any]) -> None:
        """Add items to the list, or pairs of them to the dictionary, on top of the stack."""
        target = self.stack[-1]
        if isinstance(target, dict):
            target.update(zip(items[::2], items[1::2], strict=True))
        elif isinstance(target, list):
            target.extend(items)
        else:
            raise InputError(f"A pickle adds items to a {type(target).__name__}.")


@dataclass(frozen=True)
class _StorageType:
    """A class of torch's storages, as the dtype of its elements."""

    dtype: "np.dtype[Any]"


def _tensor(storage: Array, offset: int, size: tuple[int, ...], stride: tuple[int, ...], *_: object) -> Array:
    """A view of a storage; one that leaves it, or repeats elements, is refused."""
    elements = math.prod(size)
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True)) if elements else offset
    if min((offset, *size, *stride)) < 0 or last >= max(1, len(storage)) or elements > len(storage):
        raise InputError(f"A tensor of shape {list(size)} does not fit its storage of {len(storage)} elements.")
    if not elements:
        return np.zeros(size, storage.dtype)
    steps = [step * storage.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(storage[offset:], size, steps, writeable=False)


def _scalar(dtype: NumpyType, data: object) -> Any:
    return np.frombuffer(_bytes(data), dtype=dtype.numpy())[0]


def _from_buffer(data: object, dtype: NumpyType, shape: tuple[int, ...], order: str) -> NumpyArray:
    array = NumpyArray()
    array.build((1, shape, dtype, order == "F", data))
    return array


def _dtype(name: str, *_: object) -> NumpyType:
    return NumpyType(name)


def _bytes(data: object) -> bytes:
    """Bytes; as text of one byte each, which older pickles hold in their place."""
    if isinstance(data, str):
        return data.encode("latin1")
    if not isinstance(data, bytes | bytearray):
        raise InputError(f"An array has a {type(data).__name__} in place of its bytes.")
    return bytes(data)


def _elements(data: bytes, dtype: "np.dtype[Any]", count: int) -> Array:
    if count < 0 or len(data) < count * dtype.itemsize:
        raise InputError(f"A storage has {len(data)} bytes, but {count} elements of {dtype}.")
    return np.frombuffer(data, dtype, count)


def _no_storages(dtype: "np.dtype[Any]", key: str, count: int) -> Array:
    raise InputError("A pickle refers to a storage outside it.")


def _kept(storages: Storages) -> Storages:
    """The same storages, of which the last one read is kept: neighbouring tensors often share it."""
    last: dict[str, Array] = {}

    def storage(dtype: "np.dtype[Any]", key: str, count: int) -> Array:
        if key not in last:
            last.clear()
            last[key] = storages(dtype, key, count)
        return last[key]

    return storage


def _named(module: str, name: str) -> Any:
    found = NAMES.get((module, name)) or NAMES.get((module.replace("numpy._core", "numpy.core"), name))
    if found is None:
        shown = repr(f"{module}.{name}"[:80])  # a name may be anything, and of any length
        raise InputError(f"A pickle names {shown}, which is not plain data: it is not read.")
    return found


NUMBERS = {*(f"{kind}{size}" for kind in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8", "b1"}
STORAGES = {"Long": "i8", "Int": "i4", "Short": "i2", "Char": "i1", "Byte": "u1", "Bool": "?"}
STORAGES |= {"Half": "f2", "Float": "f4", "Double": "f8"}
NAMES: dict[tuple[str, str], Any] = {
    **{("torch", f"{name}Storage"): _StorageType(np.dtype(code)) for name, code in STORAGES.items()},
    ("torch._utils", "_rebuild_tensor"): _tensor,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch.storage", "_load_from_bytes"): _read_legacy,
    ("collections", "OrderedDict"): dict,
    ("numpy", "ndarray"): NumpyArray,
    ("numpy", "dtype"): _dtype,
    ("numpy.core.multiarray", "_reconstruct"): lambda *_: NumpyArray(),
    ("numpy.core.multiarray", "scalar"): _scalar,
    ("numpy.core.numeric", "_frombuffer"): _from_buffer,
    ("_codecs", "encode"): lambda text, _: text.encode("latin1"),
}
