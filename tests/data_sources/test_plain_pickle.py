"""Pickles of plain data are read as pickle reads them; anything else is refused, and nothing runs."""

import collections
import io
import os
import pickle
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ckgconv import InputError
from ckgconv.data.plain_pickle import array_of, read_pickle, read_torch

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(PLAIN, st.integers(3, 5))
def test_plain_objects_are_read_as_pickle_reads_them(value, protocol):
    assert read_pickle(pickle.dumps(value, protocol)) == value


def tensors():
    """Tensors of several dtypes, views and shared storages."""
    shared = torch.arange(12.0)
    return {
        "rows": shared.view(3, 4),
        "columns": shared.view(3, 4).T,
        "part": shared[5:9:2],
        "whole": torch.arange(5),
        "none": torch.zeros(2, 0),
        "half": torch.linspace(0, 1, 3).half(),
        "one": torch.tensor(7),
        "true": torch.tensor([True, False]),
        "ordered": collections.OrderedDict(a=torch.ones(2)),
    }


def same(ours, theirs):
    if isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        return all(same(ours[name], theirs[name]) for name in theirs)
    expected = theirs.numpy() if isinstance(theirs, torch.Tensor) else theirs
    return np.array_equal(array_of(ours), expected) and array_of(ours).dtype == expected.dtype


@pytest.mark.parametrize("zip_form", [True, False])
def test_tensors_saved_by_torch(tmp_path, zip_form):
    torch.save(tensors(), tmp_path / "tensors.pt", _use_new_zipfile_serialization=zip_form)
    assert same(read_torch(tmp_path / "tensors.pt"), tensors())


@pytest.mark.parametrize("protocol", range(6))
def test_tensors_and_arrays_in_a_pickle(protocol):
    arrays = {"a": np.arange(4), "f": np.asfortranarray(np.ones((2, 3))), "s": np.float64(2.5), ">": np.ones(2, ">i4")}
    both = {**tensors(), **arrays}
    assert same(read_pickle(pickle.dumps(both, protocol)), both)


class Calls:
    """An object whose pickle calls a function."""

    def __init__(self, function, *arguments):
        self.called = (function, arguments)

    def __reduce__(self):
        return self.called


@pytest.mark.parametrize("protocol", range(6))
def test_whatever_could_run_is_refused(protocol, tmp_path):
    for evil in (Calls(os.mkdir, str(tmp_path / "ran")), [Calls(eval, "1")], Calls(getattr, "", "join"), Calls):
        with pytest.raises(InputError, match="which is not plain data"):
            read_pickle(pickle.dumps(evil, protocol))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"N",
        b".",
        b"r\xff\xff\xff\xff.",  # a place in the memo that pickle would allocate
        b"(ios\nsystem\n.",
        b"}(K\x01u.",
        b"\x82\x01.",  # an extension of copyreg
        b"Pid\n.",
        b"K\x01K\x02a.",
        b"]}(K\x01K\x02ub.",
        b"\x80\x02cnumpy.core.multiarray\nscalar\ncnumpy\ndtype\nX\x02\x00\x00\x00i8\x85RM\xff\xff\x86R.",
    ],
)
def test_damaged_pickles_are_refused(data):
    with pytest.raises(InputError):
        read_pickle(data)


def test_views_that_leave_their_storage_are_refused(tmp_path):
    file = io.BytesIO()
    torch.save(torch.arange(4.0), file)
    program = zipfile.ZipFile(file).read("archive/data.pkl")
    for size in (b"K\x05\x85", b"J\xff\xff\xff\x7f\x85"):
        forged = program.replace(b"K\x04\x85", size, 1)
        assert forged != program
        with pytest.raises(InputError, match="does not fit its storage"):
            read_forged(tmp_path, forged)
    with pytest.raises(InputError, match="A storage has 16 bytes"):
        read_forged(tmp_path, program.replace(b"K\x04tq\x05Q", b"M\x00\x40tq\x05Q"))


def read_forged(folder, program):
    with zipfile.ZipFile(folder / "forged.pt", "w") as archive:
        archive.writestr("archive/data.pkl", program)
        archive.writestr("archive/data/0", np.arange(4, dtype=np.float32).tobytes())
    return read_torch(folder / "forged.pt")
