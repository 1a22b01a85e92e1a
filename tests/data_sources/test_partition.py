"""Parts of a graph: every node in one, about equal sizes, few edges across, the same ones for the same seed."""

from types import SimpleNamespace

import pytest
import torch

from ckgconv import InputError
from ckgconv.data import partition as partition_module
from ckgconv.data.partition import ROOM, partition


def grid(side: int) -> torch.Tensor:
    """Edges of a square grid, in both directions."""
    node = torch.arange(side**2).view(side, side)
    one_way = torch.cat(
        [
            torch.stack([node[:, :-1].flatten(), node[:, 1:].flatten()]),
            torch.stack([node[:-1].flatten(), node[1:].flatten()]),
        ],
        dim=1,
    )
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def crossing(edges: torch.Tensor, part: torch.Tensor) -> float:
    return float((part[edges[0]] != part[edges[1]]).double().mean())


def test_a_grid_is_cut_into_equal_parts_along_few_edges():
    edges, parts = grid(30), 9
    part = partition(edges, 900, parts)
    sizes = torch.bincount(part, minlength=parts)
    assert int(sizes.sum()) == 900
    assert int(sizes.max()) <= 100 * ROOM + 1
    assert int(sizes.min()) >= 50
    assert crossing(edges, part) < 0.25  # at random 8/9
    assert torch.equal(part, partition(edges, 900, parts))
    assert not torch.equal(part, partition(edges, 900, parts, seed=1))


def test_nodes_that_nothing_reaches_fill_the_smallest_parts():
    part = partition(torch.tensor([[0, 1], [1, 0]]), 40, 4)
    assert torch.bincount(part, minlength=4).max() <= 11
    assert partition(grid(3), 9, 1).tolist() == [0] * 9
    assert sorted(partition(grid(3), 9, 9).tolist()) == list(range(9))
    with pytest.raises(InputError, match=r"training.sampling.parts is 10 for 9 nodes: give 1 to 9"):
        partition(grid(3), 9, 10)


def test_metis_is_used_where_pyg_finds_it(monkeypatch):
    def clusters(data, parts, log):
        assert data.edge_index.shape[1] == grid(3).shape[1]
        return SimpleNamespace(
            partition=SimpleNamespace(
                node_perm=torch.tensor([8, 7, 6, 5, 4, 3, 2, 1, 0]), partptr=torch.tensor([0, 4, 9])
            )
        )

    monkeypatch.setattr(partition_module.pyg, "WITH_METIS", True)
    monkeypatch.setattr(partition_module, "ClusterData", clusters)
    assert partition(grid(3), 9, 2).tolist() == [1, 1, 1, 1, 1, 0, 0, 0, 0]
