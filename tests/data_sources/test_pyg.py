"""Graphs in Python: what is packed as it is, and what is refused with a sentence."""

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from ckgconv import InputError
from ckgconv.data.pyg import from_pyg, from_pyg_masks


def graph(**changed) -> Data:
    """A path of three nodes."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return Data(**{"x": torch.rand(3, 2), "edge_index": edges, "y": torch.zeros(1), **changed})


def test_attributes_of_one_dimension_become_columns():
    data = from_pyg([graph(x=torch.arange(3), edge_attr=torch.arange(4))])
    assert data.x.shape == (3, 1)
    assert data.edge_attr.shape == (4, 1)


def test_targets_of_graphs_and_of_nodes():
    assert from_pyg([graph(), graph(y=torch.tensor(2.0))]).y.tolist() == [0, 2]
    assert from_pyg([graph(y=torch.rand(1, 4))] * 2).y.shape == (2, 4)
    assert from_pyg([graph(y=torch.rand(3))] * 2).node_targets
    assert from_pyg([graph(x=torch.rand(3, 2, dtype=torch.bfloat16))]).x.dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("graphs", "words"),
    [
        (None, "graphs is a NoneType"),
        (graph(), "graphs is a Data"),
        ([None], "Graph 0 is a NoneType"),
        ([graph(), (1, 2)], "Graph 1 is a tuple"),
        ([graph(x=np.ones((3, 2)))], "x of graph 0 is a ndarray, not a tensor"),
        ([graph(x=torch.eye(3).to_sparse())], "give a dense one of numbers"),
        ([graph(edge_index=torch.ones(2, 4, dtype=torch.bool)), graph()], "edge_index of graph 0 has dtype bool"),
        ([graph(), graph(edge_index=torch.ones(2, 4))], "edge_index of graph 1 has dtype float32"),
        ([graph(x=torch.ones(3, 2, device="meta"))], "give a dense one of numbers"),
        ([graph(x=torch.ones(3, 2, dtype=torch.complex64))], "give a dense one of numbers"),
        ([graph(x=torch.ones(3, 2, 2))], r"x of graph 0 has shape \[3, 2, 2\]"),
        ([graph(), graph(x=torch.rand(3, 1))], r"x of graph 1 has shape \[3, 1\]"),
        ([graph(), graph(x=torch.ones(3, 2, dtype=torch.int64))], "of integers or of floats"),
        ([graph(num_nodes=7)], "x of graph 0 has 3 rows, but its num_nodes is 7"),
        ([graph(num_nodes=2**62)], "its num_nodes is 4611686018427387904"),
        ([graph(edge_index=torch.tensor([0, 1]))], "edge_index of graph 0 has shape"),
        ([graph(edge_index=torch.zeros(2, 1))], "edge_index of graph 0 has dtype float32"),
        ([graph(edge_index=torch.tensor([[0], [3]]))], "edge_index contains 3 in graph 0"),
        # Together they have as many attributes as edges, but not each.
        ([graph(edge_attr=torch.ones(3)), graph(edge_attr=torch.ones(5))], "edge_attr of graph 0 has shape"),
        ([graph(edge_weight=torch.ones(3)), graph(edge_weight=torch.ones(5))], "edge_weight of graph 0 has shape"),
        ([graph(pos=torch.ones(2, 2))], "pos of graph 0 has shape"),
        ([graph(pos=torch.tensor(1.0))], "pos of graph 0 has shape"),
        ([graph(num_nodes="three")], "its num_nodes is a str"),
        ([graph(y=torch.ones(11))] * 2, r"y of graph 0 has 11 rows for 3 nodes.*\[1, T\] per graph"),
        ([graph(y=torch.ones(3)), graph()], "y of graph 1 has 1 rows for 3 nodes"),
        ([graph(y=torch.tensor([float("inf")]))], "y contains inf"),
        ([graph(x=torch.full((3, 2), float("nan")))], "x contains nan"),
    ],
)
def test_graphs_that_cannot_be_packed_are_refused(graphs, words):
    with pytest.raises(InputError, match=words):
        from_pyg(graphs)


def test_masks_are_boolean():
    masks = {f"{name}_mask": torch.tensor([0, 2, 0]) for name in ("train", "val", "test")}
    with pytest.raises(InputError, match=r"train_mask has dtype torch.int64: convert it with .bool"):
        from_pyg_masks(graph(y=torch.ones(3), **masks))


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64, torch.int8])
def test_graphs_may_have_integers_of_other_widths(dtype):
    edges = graph().edge_index
    data = from_pyg([graph(edge_index=edges.to(dtype)), graph()])
    assert data.edge_index.tolist() == torch.cat([edges, edges], dim=1).tolist()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_nested_tensors_are_refused():
    with pytest.raises(InputError, match=r"x of graph 0 is a tensor .* give a dense one of numbers"):
        from_pyg([graph(x=torch.nested.nested_tensor([torch.ones(2), torch.ones(1)]))])
