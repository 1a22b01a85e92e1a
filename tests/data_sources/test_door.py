"""Arrays that do not belong together are refused at the door, each with a sentence that names it."""

import numpy as np
import pytest
import torch

from ckgconv import InputError
from ckgconv.data import load, load_packed
from ckgconv.data.door import check_counts
from ckgconv.data.packed import from_arrays, join
from ckgconv.recipe import DataRecipe


def arrays(**changed):
    """Three graphs of 2, 1 and 3 nodes; None leaves an array out."""
    values = {
        "num_nodes": np.array([2, 1, 3]),
        "num_edges": np.array([2, 0, 4]),
        "edge_index": np.array([[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]),
        "x": np.arange(6.0).reshape(6, 1),
        "edge_attr": np.arange(6).reshape(6, 1),
        "pos": np.ones((6, 2)),
        "y": np.array([1.0, 2.0, 3.0]),
        "train_idx": np.array([0]),
        "val_idx": np.array([1]),
        "test_idx": np.array([2]),
    }
    return {name: value for name, value in {**values, **changed}.items() if value is not None}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"num_nodes": np.array([2, 1, 2**62])},
            r"num_nodes adds up to 4,611,686,018,427,387,904, but there are 6 rows",
        ),
        ({"num_nodes": np.array([2**63, 2**63, 6], dtype=np.uint64)}, "more than 63 bits"),
        ({"num_nodes": np.array([2, 1, 2])}, "num_nodes adds up to 5, but there are 6"),
        ({"num_nodes": np.array([-2, 5, 3])}, "num_nodes contains -2"),
        ({"num_nodes": np.array([2.0, 1.0, 3.0])}, "num_nodes has dtype float64"),
        ({"num_nodes": np.array([[2, 1, 3]])}, "num_nodes has shape"),
        ({"num_nodes": np.array([], dtype=int), "num_edges": np.array([], dtype=int)}, "has no graph"),
        ({"num_edges": np.array([2, 0])}, r"num_edges has shape \[2\], expected \[3\]"),
        ({"num_edges": np.array([2, 0, 5])}, "num_edges adds up to 7, but there are 6 columns of edge_index"),
        ({"edge_index": np.array([0, 1])}, "edge_index has shape"),
        ({"edge_index": np.zeros((3, 6), dtype=int)}, "edge_index has 3 rows"),
        ({"edge_index": np.zeros((2, 6))}, "edge_index has dtype float64"),
        ({"edge_index": np.array([[0, 1, 0, 1, 1, 3], [1, 0, 1, 0, 2, 1]])}, "contains 3 in graph 2, which has 3"),
        ({"edge_index": np.array([[0, 2, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]])}, "contains 2 in graph 0, which has 2"),
        ({"edge_index": np.array([[0, -1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]])}, "edge_index contains -1"),
        (
            {
                "num_nodes": np.array([3, 0, 3]),
                "num_edges": np.array([1, 1, 4]),
                "edge_index": np.ones((2, 6), np.uint8),
            },
            "contains 1 in graph 1, which has 0 nodes",
        ),
        ({"x": np.ones((5, 1))}, "num_nodes adds up to 6, but there are 5 rows of x|give one row per node"),
        ({"x": np.ones(6)}, "x has shape"),
        ({"x": np.array([[1.0]] * 5 + [[np.nan]])}, "x contains nan"),
        ({"x": np.array([[1.0]] * 5 + [[1e30]])}, r"x contains 1e\+30"),
        ({"edge_attr": np.ones((5, 1))}, r"edge_attr has shape \[5, 1\], expected \[6, 1\]"),
        ({"edge_weight": np.ones(5)}, r"edge_weight has shape \[5\]"),
        ({"edge_weight": np.array([1, 1, 1, 1, 1, -1.0])}, r"edge_weight contains -1.0"),
        ({"edge_weight": np.ones(6, dtype=int)}, "edge_weight has dtype int64"),
        ({"pos": np.ones((5, 2))}, r"pos has shape \[5, 2\]"),
        ({"pos": np.full((6, 2), np.inf)}, "pos contains inf"),
        ({"y": np.ones(4)}, "y has 4 rows for 3 graphs with 6 nodes"),
        ({"y": np.ones((3, 2, 2))}, "y has shape"),
        ({"y": np.array(1.0)}, "y has shape"),
        ({"y": np.array([1.0, np.nan, np.inf])}, "y contains inf"),
        ({"y": np.array([1.0, np.nan, 1e38])}, r"y contains 1e\+38.*rescale"),
        ({"train_idx": np.array([True, False, False])}, "train_idx has dtype bool"),
        ({"train_idx": np.array([0.5])}, "train_idx has dtype float64"),
        ({"train_idx": np.array([[0]])}, "train_idx has shape"),
        ({"train_idx": np.array([3])}, "train_idx contains 3, but graph numbers lie in 0 … 2"),
        ({"train_idx": np.array([-1])}, "train_idx contains -1"),
        ({"train_idx": np.array([0, 0])}, "train_idx names a graph twice"),
        ({"test_idx": np.array([2, 0])}, "Graph 0 is in train_idx and in test_idx"),
        ({"x": None, "num_edges": None}, "lacks the arrays num_edges, x"),
        ({"node_splits": np.zeros((2, 5), dtype=int), "y": np.ones(6)}, r"node_split has shape \[5\]"),
        ({"node_splits": np.zeros(6, dtype=int), "y": np.ones(6)}, "node_splits has shape"),
        ({"node_splits": np.zeros((2, 6), dtype=int)}, "node_split splits 6 nodes, but y has 3 rows"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(tmp_path, changed, words):
    np.savez(tmp_path / "data.npz", **arrays(**changed))
    with pytest.raises(InputError, match=words) as refusal:
        load_packed(tmp_path / "data.npz")
    assert str(tmp_path / "data.npz") in str(refusal.value)
    if "node_splits" in changed:
        return
    with pytest.raises(InputError, match=words):
        from_arrays({name: torch.from_numpy(array) for name, array in arrays(**changed).items()})


def test_what_fits_passes(tmp_path):
    for changed in ({}, {"y": None}, {"y": np.full(3, np.nan)}, {"y": np.arange(6)}, {"x": np.zeros((6, 0))}):
        np.savez(tmp_path / "data.npz", **arrays(**changed))
        assert load_packed(tmp_path / "data.npz").num_graphs == 3
    for dtype in (np.uint8, np.uint16, np.uint32, np.uint64, np.int8):
        wide = {name: array.astype(dtype) for name, array in arrays().items() if array.dtype.kind == "i"}
        np.savez(tmp_path / "data.npz", **arrays(**wide))
        assert load_packed(tmp_path / "data.npz").batch(torch.tensor([2, 0])).edge_index.tolist()[0] == [
            0,
            1,
            1,
            2,
            3,
            4,
        ]


@pytest.mark.parametrize("value", [[1, 2], None, torch.ones(2, dtype=torch.complex64), torch.eye(3).to_sparse()])
def test_what_is_no_dense_tensor_of_numbers_is_refused(value):
    tensors = {name: torch.from_numpy(array) for name, array in arrays().items()}
    with pytest.raises(InputError, match="x is a"):
        from_arrays({**tensors, "x": value})


def test_counts_do_not_overflow():
    with pytest.raises(InputError, match="adds up to"):
        check_counts("num_nodes", np.array([2**62] * 4), 0, "rows")


def test_parts_of_other_forms_are_not_joined():
    def part(**changed):
        return from_arrays({name: torch.from_numpy(array) for name, array in arrays(**changed).items()})

    assert join({"train": part(), "val": part(), "test": part()}).num_graphs == 9
    for changed, words in (
        ({"x": np.ones((6, 2))}, r"x has floats and columns \[2\] in val"),
        ({"x": np.ones((6, 1), dtype=int)}, r"x has integers"),
        ({"y": np.ones(6)}, "y has a row per node in some parts only"),
    ):
        with pytest.raises(InputError, match=words):
            join({"train": part(), "val": part(**changed), "test": part()})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"pos": None}, "neither edge_index nor pos"),
        ({"num_nodes": None}, "lacks the arrays num_nodes"),
        ({}, "at least 9 nodes"),
        ({"num_nodes": np.array([6, 1, 3])}, "cannot be used. num_nodes adds up to 10"),
    ],
)
def test_superpixel_files_that_do_not_fit_are_refused(tmp_path, changed, words):
    without = {"edge_index": None, "num_edges": None, "edge_attr": None}
    np.savez(tmp_path / "mnist_superpixels.npz", **arrays(**without, **changed))
    with pytest.raises(InputError, match=words):
        load(DataRecipe("mnist"), tmp_path)
