import torch

from ckgconv.data.superpixels import superpixel_edges


def by_hand(pos):
    """The same edges, computed for one graph and one node at a time."""
    distance = (pos[:, None] - pos).double().norm(dim=-1)
    nodes = len(pos)
    sigma = [sorted(distance[i][torch.arange(nodes) != i].tolist())[:8] for i in range(nodes)]
    sigma = torch.tensor([sum(near) / 8 + 1e-8 for near in sigma], dtype=torch.float64)
    decay = torch.exp(-((distance / sigma[:, None]) ** 2))
    similarity = (decay + decay.T) / 2
    edges, weights = [], []
    for i in range(nodes):
        order = sorted((j for j in range(nodes) if j != i), key=lambda j: (-similarity[i, j].item(), j))[:8]
        edges += [(i, j) for j in order]
        weights += [similarity[i, j].item() for j in order]
    return torch.tensor(edges).T, torch.tensor(weights)


def test_edges_follow_the_rule_on_graphs_of_different_sizes():
    torch.manual_seed(0)
    sizes = torch.tensor([12, 9, 30])
    pos = torch.rand(int(sizes.sum()), 2)
    index, weight = superpixel_edges(sizes, pos)
    start = 0
    for size in sizes.tolist():
        edges, weights = by_hand(pos[start : start + size])
        rows = slice(8 * start, 8 * (start + size))
        assert torch.equal(index[:, rows].long(), edges)
        torch.testing.assert_close(weight[rows, 0], weights.float())
        start += size


def test_ties_go_to_the_smaller_number():
    grid = torch.cartesian_prod(torch.arange(5.0), torch.arange(5.0))
    index, _ = superpixel_edges(torch.tensor([25]), grid)
    centre = index[1, 8 * 12 : 8 * 13].tolist()
    assert centre == [7, 11, 13, 17, 6, 8, 16, 18]
