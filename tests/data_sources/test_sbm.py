import pytest
import torch

from ckgconv.data import sbm


@pytest.fixture(scope="module")
def cluster():
    return sbm.cluster(0, sizes=(400, 40, 40))


@pytest.fixture(scope="module")
def pattern():
    return sbm.pattern(0, sizes=(6, 2, 2), patterns=50)


def density(data, same):
    """Share of node pairs of one graph that are joined, among those with equal or with different labels."""
    joined = possible = 0
    for graph in range(0, data.num_graphs, 7):
        batch = data.batch(torch.tensor([graph]))
        alike = (batch.y[:, None] == batch.y) == same
        alike.fill_diagonal_(False)
        possible += int(alike.sum())
        joined += int(alike[batch.edge_index[0], batch.edge_index[1]].sum())
    return joined / possible


def test_cluster_is_drawn_as_published(cluster):
    assert cluster.x.shape[1] == 7
    assert float(cluster.node_ptr[-1]) / cluster.num_graphs == pytest.approx(117, abs=4)
    assert density(cluster, same=True) == pytest.approx(0.55, abs=0.01)
    assert density(cluster, same=False) == pytest.approx(0.25, abs=0.01)
    for graph in range(20):
        batch = cluster.batch(torch.tensor([graph]))
        kind = batch.x.argmax(1)
        assert sorted(kind[kind > 0].tolist()) == [1, 2, 3, 4, 5, 6]
        assert torch.equal(batch.y[kind > 0], kind[kind > 0] - 1)


def test_pattern_is_drawn_as_published(pattern):
    assert pattern.x.shape[1] == 3
    assert [len(pattern.split(name)) for name in ("train", "val", "test")] == [300, 100, 100]
    assert float(pattern.node_ptr[-1]) / pattern.num_graphs == pytest.approx(117, abs=6)
    assert pattern.y.float().mean().item() == pytest.approx(0.167, abs=0.03)
    # Graphs of one pattern share its subgraph, so the numbers of planted nodes and of edges between them are equal.
    for first in (0, 6):
        counts = set()
        for graph in range(first, first + 6):
            batch = pattern.batch(torch.tensor([graph]))
            inside = (batch.y[batch.edge_index] == 1).all(0)
            counts.add((int(batch.y.sum()), int(inside.sum())))
        assert len(counts) == 1


@pytest.mark.parametrize(
    "draw", [lambda seed: sbm.cluster(seed, (3, 1, 1)), lambda seed: sbm.pattern(seed, (2, 1, 1), 2)]
)
def test_graphs_are_simple_symmetric_and_follow_the_seed(draw):
    one, same, other = draw(3), draw(3), draw(4)
    assert torch.equal(one.edge_index, same.edge_index)
    assert torch.equal(one.x, same.x)
    assert one.edge_index.shape != other.edge_index.shape or not torch.equal(one.edge_index, other.edge_index)
    for graph in range(one.num_graphs):
        edges = set(map(tuple, one.batch(torch.tensor([graph])).edge_index.T.tolist()))
        assert all((j, i) in edges and i != j for i, j in edges)


def test_large_graph_is_drawn_as_documented():
    data = sbm.large(0)
    batch = data.batch(torch.tensor([0]))
    assert (data.num_graphs, batch.num_nodes, batch.x.shape[1]) == (1, 2_000, 6)
    assert torch.bincount(batch.y).tolist() == [400] * 5
    inside = (batch.y[batch.edge_index[0]] == batch.y[batch.edge_index[1]]).sum() / batch.num_nodes
    assert float(inside) == pytest.approx(6, abs=0.3)
    assert batch.edge_index.shape[1] / batch.num_nodes == pytest.approx(8, abs=0.4)
    kind = batch.x.argmax(1)
    labelled = kind > 0
    assert torch.equal(batch.y[labelled], kind[labelled] - 1)
    assert torch.bincount(batch.y[labelled]).tolist() == [20] * 5
    # No node may be judged by a label that is its own feature.
    assert torch.equal(labelled, batch.node_split == -1)
    shares = [len(data.target_rows(name)) / 1_900 for name in ("train", "val", "test")]
    assert shares == pytest.approx([0.4, 0.2, 0.4], abs=0.03)
    assert torch.equal(sbm.large(0).edge_index, data.edge_index)
    assert not torch.equal(sbm.large(1).node_split, data.node_split)


def test_the_cyclic_graph_leads_from_each_community_to_the_next():
    data = sbm.cyclic(0)
    batch = data.batch(torch.tensor([0]))
    source, target = batch.edge_index
    onward = (batch.y[target] - batch.y[source]) % 5
    assert [int((onward == step).sum()) / 2_000 for step in range(5)] == pytest.approx(
        [0.5, 4, 0.5, 0.5, 0.5], abs=0.15
    )
    assert batch.num_nodes == 2_000
    assert bool((source != target).all())
