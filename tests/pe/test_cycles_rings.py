"""Cycles and rings together are what each of them is alone."""

import pytest
import torch
from graphs_for_tests import packed

from ckgconv.pairs import Encoding
from ckgconv.pe.cycles import node_walks_and_cycles, walks_and_cycles
from ckgconv.pe.rings import node_walks_and_rings, walks_and_rings

pytestmark = pytest.mark.usefixtures("double")


def test_both_stand_next_to_the_walks():
    path, ring = torch.tensor([[0, 1], [1, 0]]), torch.tensor([[0, 1, 2, 1, 2, 0], [1, 2, 0, 0, 1, 2]])
    graphs = packed((3, path), (4, ring))
    encoding = Encoding("rrwp_cycles_rings", 3, 20, "global")
    found = encoding.coordinates(graphs, torch.float64)
    assert encoding.channels == encoding.node_channels == found.values.shape[1] == 12
    assert torch.equal(found.values[:, :10], walks_and_cycles(graphs, 3).values)
    assert torch.equal(found.values[:, 10:], walks_and_rings(graphs, 3).values[:, 4:])
    node = encoding.node_part(graphs, found, torch.float64)
    assert torch.equal(node[:, :10], node_walks_and_cycles(graphs, 3))
    assert torch.equal(node[:, 10:], node_walks_and_rings(graphs, 3)[:, 4:])
