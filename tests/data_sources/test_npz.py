"""Headers first: damaged files, lies about sizes and bombs are refused before memory is taken."""

import io
import os
import zipfile
from itertools import product

import numpy as np
import pytest

from ckgconv import InputError
from ckgconv.data.npz import read_npz


def written(path, *, method=zipfile.ZIP_DEFLATED, **members):
    """A zip of arrays, or of bytes as they are."""
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, value in members.items():
            archive.writestr(f"{name}.npy", value if isinstance(value, bytes) else npy(value))
    return path


def npy(array, allow_pickle=False):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=allow_pickle)
    return file.getvalue()


def claiming(shape, dtype="<i8", values=b""):
    """A .npy whose header claims a shape."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"shape": shape, "fortran_order": False, "descr": dtype})
    return file.getvalue() + values


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(3, dtype=">i4"),
        np.zeros((0, 4)),
        np.float32(3),
        np.array([True, False]),
    ],
)
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_arrays_are_read_as_numpy_reads_them(tmp_path, array, method):
    path = written(tmp_path / "a.npz", method=method, a=array, b=np.ones(3))
    found = read_npz(path, ["a", "absent"])
    assert list(found) == ["a"]
    assert np.array_equal(found["a"], array)
    assert found["a"].shape == np.shape(array)
    assert found["a"].dtype == np.asarray(array).dtype.newbyteorder("=")


@pytest.mark.parametrize(
    ("member", "words"),
    [
        (claiming((2**50,)), "claims 9,007,199,254,740,992 bytes, but there are 0"),
        (claiming((2**40, 2**40)), "claims"),
        (claiming((-1,)), "not an array"),
        (claiming((1,) * 9, values=bytes(8)), "not an array"),
        (claiming((2,), values=bytes(8)), "claims 16 bytes, but there are 8"),
        (claiming((1,), "|O", bytes(8)), "no objects"),
        (claiming((1,), "<U1", bytes(4)), "no objects, text"),
        (claiming((1,), "<c8", bytes(8)), "complex"),
        (claiming((1,), "<M8[s]", bytes(8)), "has dtype"),
        (npy(np.arange(4))[:-8], "claims 32 bytes, but there are 24"),
        (b"", "not a packed data set"),
        (b"\x93NUMPY\x01\x00\x10\x00{'shape': ((((((", "not a packed data set"),
        (b"\x93NUMPY\x03\x00\x02\x00\x00\x00{}", "version"),
        (b"PK" + bytes(100), "not a packed data set"),
    ],
)
def test_headers_that_lie_are_refused(tmp_path, member, words):
    with pytest.raises(InputError, match=words):
        read_npz(written(tmp_path / "a.npz", a=member), ["a"])


def test_bombs_are_not_unpacked(tmp_path):
    zeros = np.zeros(2**25)  # 256 MiB
    path = written(tmp_path / "bomb.npz", a=zeros, b=np.ones(2))
    assert path.stat().st_size < 2**19
    with pytest.raises(InputError, match="as no real data does"):
        read_npz(path, ["a"])
    assert read_npz(path, ["b"])["b"].tolist() == [1, 1]  # nobody asked for the other one


def test_what_is_no_archive_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_npz(tmp_path / "absent.npz", ["a"])
    with pytest.raises(InputError, match="a folder or a device"):
        read_npz(tmp_path, ["a"])
    os.mkfifo(tmp_path / "pipe.npz")  # reading it would wait forever
    with pytest.raises(InputError, match="a folder or a device"):
        read_npz(tmp_path / "pipe.npz", ["a"])
    with pytest.raises(InputError, match="another method than deflate"):
        read_npz(written(tmp_path / "lzma.npz", method=zipfile.ZIP_LZMA, a=np.ones(3)), ["a"])
    twice = written(tmp_path / "two.npz", a=np.ones(3), b=np.ones(3))
    twice.write_bytes(twice.read_bytes().replace(b"b.npy", b"a.npy"))
    with pytest.raises(InputError, match="two arrays a"):
        read_npz(tmp_path / "two.npz", ["a"])
    with zipfile.ZipFile(tmp_path / "many.npz", "w") as archive:
        for number in range(1001):
            archive.writestr(str(number), b"")
    with pytest.raises(InputError, match="1,001 members"):
        read_npz(tmp_path / "many.npz", ["a"])


def test_every_flipped_byte_is_refused_or_changes_nothing(tmp_path):
    path = written(tmp_path / "a.npz", a=np.arange(50), b=np.ones((3, 2)))
    whole = path.read_bytes()
    for place, changed in product(range(len(whole)), (0x55, 0x01)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ changed]) + whole[place + 1 :])
        try:
            found = read_npz(path, ["a", "b"])
        except InputError:
            continue
        assert found.keys() == EXPECTED.keys()
        assert all(np.array_equal(found[name], value) for name, value in EXPECTED.items())


EXPECTED = {"a": np.arange(50), "b": np.ones((3, 2))}
