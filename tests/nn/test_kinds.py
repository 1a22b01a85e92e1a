"""Equal pairs computed once: the same results, gradients and statistics as pair by pair."""

import copy

import pytest
import torch
from graphs_for_tests import molecule
from torch_geometric.data import Batch

from ckgconv import CKGConv
from ckgconv.backends import accelerate
from ckgconv.nn import layer_kernel
from ckgconv.nn.kinds import kinds_of_pairs
from ckgconv.nn.layer_input import GivenInput

pytestmark = pytest.mark.usefixtures("double")

# The same molecule twice, so that at least half of the pairs repeat.
GRAPHS = Batch.from_data_list([molecule(size, size) for size in (7, 11, 7, 11, 4)])
BONDS = torch.nn.functional.one_hot(GRAPHS.edge_attr.view(-1), 4).double()
CASES = [("rrwp", "global"), ("rrwp", 2), ("rrwp", "sparse_global"), ("spd", "global"), ("rd", 3), ("pair_rwse", 1)]


def kinds_in(layer, edge_attr=BONDS):
    batch = layer.prepare(GivenInput(torch.randn(GRAPHS.num_nodes, 6), GRAPHS.edge_index, edge_attr, GRAPHS.batch))
    return batch, kinds_of_pairs(batch, layer.kernel.stem.encoder.reads(batch.pairs, batch.degree))


def run(layer, training):
    """Result, gradients and statistics."""
    x = torch.randn(GRAPHS.num_nodes, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    y = layer.train(training)(x.requires_grad_(), GRAPHS.edge_index, BONDS, GRAPHS.batch)
    gradients = torch.autograd.grad(y.sin().sum(), [x, *layer.parameters()], allow_unused=True)
    return [y, *(value for value in gradients if value is not None), *layer.buffers()]


@pytest.mark.parametrize(("pe", "support"), CASES)
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("norm", ["batch", "layer"])
def test_equal_pairs_once_are_all_pairs(pe, support, training, norm, monkeypatch):
    layer = CKGConv(6, 8, pe=pe, steps=4, support=support, edge_dim=4, kernel_norm=norm)
    other = copy.deepcopy(layer)
    batch, kinds = kinds_in(layer)
    assert len(kinds.rows.representative) <= 0.6 * len(batch.pairs.coordinates)
    once = run(layer, training)
    monkeypatch.setattr(layer_kernel, "kinds_of_pairs", lambda batch, reads: None)
    for mine, theirs in zip(once, run(other, training), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "options",
    [
        {"degree_scaler": "coordinates"},
        {"constraint": "softmax"},
        {"constraint": "softplus", "heads": 2},
        {"kernel_blocks": 0},
        {"support": "sparse_global", "constraint": "softmax", "degree_scaler": "coordinates"},
    ],
)
def test_every_option(options, monkeypatch):
    layer = CKGConv(6, 8, **{"steps": 4, "edge_dim": 4, **options})
    others = [copy.deepcopy(layer), accelerate(copy.deepcopy(layer))]
    _, kinds = kinds_in(layer)
    assert kinds is not None
    once = run(layer, True)
    for mine, theirs in zip(once, run(others[1], True), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)
    monkeypatch.setattr(layer_kernel, "kinds_of_pairs", lambda batch, reads: None)
    for mine, theirs in zip(once, run(others[0], True), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-11)


def test_an_accelerated_layer_evaluates_them_once():
    layer = CKGConv(6, 8, steps=4, edge_dim=4).eval()
    fast = accelerate(copy.deepcopy(layer))
    x = torch.randn(GRAPHS.num_nodes, 6)
    with torch.no_grad():
        found, expected = (each(x, GRAPHS.edge_index, BONDS, GRAPHS.batch) for each in (fast, layer))
    torch.testing.assert_close(found, expected)


def test_parallel_edges_and_their_number_make_a_kind():
    """One edge of attribute 2 is not two edges of attribute 1: the encoder's bias counts twice."""
    edges = torch.tensor([[0, 1, 2, 3, 2, 3], [1, 0, 3, 2, 3, 2]])
    layer = CKGConv(6, 8, pe="spd", steps=2, edge_dim=1)
    x = torch.randn(4, 6)
    y = layer(x, edges, torch.tensor([2.0, 2, 1, 1, 1, 1]))
    for features in (torch.tensor([2.0, 2, 1, 1, 1, 1]), torch.tensor([1.0, 1, 1, 1, 0, 0])):
        batch = layer.prepare(GivenInput(x, edges, features))
        kinds = kinds_of_pairs(batch, layer.kernel.stem.encoder.reads(batch.pairs, batch.degree))
        on_edges = kinds.rows.kind[batch.edge_row]
        assert on_edges[0] == on_edges[1]
        assert on_edges[0] != on_edges[2] == on_edges[4]
    assert torch.isfinite(y).all()


def test_what_has_a_gradient_of_its_own_is_not_merged():
    layer = CKGConv(6, 8, steps=4, edge_dim=4)
    assert kinds_in(layer)[1] is not None
    assert kinds_in(layer, BONDS.clone().requires_grad_())[1] is None
    bonds = BONDS.clone().requires_grad_()
    x = torch.randn(GRAPHS.num_nodes, 6)
    layer(x, GRAPHS.edge_index, bonds, GRAPHS.batch).sin().sum().backward()
    # Copies of one molecule with different features: their bonds have different gradients.
    graph = GRAPHS.batch[GRAPHS.edge_index[0]]
    assert not torch.allclose(bonds.grad[graph == 0], bonds.grad[graph == 2])
    weight = torch.rand(GRAPHS.num_edges).requires_grad_()
    layer(x, GRAPHS.edge_index, BONDS, GRAPHS.batch, weight).sin().sum().backward()
    assert (weight.grad != 0).all()


def test_dropout_inside_the_kernel_draws_for_every_pair(monkeypatch):
    seen = []

    def spy(batch, reads):
        seen.append(batch)
        return kinds_of_pairs(batch, reads)

    monkeypatch.setattr(layer_kernel, "kinds_of_pairs", spy)
    layer = CKGConv(6, 8, steps=4, edge_dim=4, mlp_dropout=0.3)
    run(layer, True)
    assert not seen
    run(layer, False)
    assert len(seen) == 1
    run(CKGConv(6, 8, steps=4, edge_dim=4, kernel_dropout=0.3), True)
    assert len(seen) == 2
