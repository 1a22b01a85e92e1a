"""Graphs in Python: what is packed as it is, and what is refused with a sentence."""

import torch
from torch_geometric.data import Data

from ckgconv.data.pyg import from_pyg


def graph(**changed) -> Data:
    """A path of three nodes."""
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    return Data(**{"x": torch.rand(3, 2), "edge_index": edges, "y": torch.zeros(1), **changed})


def test_attributes_of_one_dimension_become_columns():
    data = from_pyg([graph(x=torch.arange(3), edge_attr=torch.arange(4))])
    assert data.x.shape == (3, 1)
    assert data.edge_attr.shape == (4, 1)
