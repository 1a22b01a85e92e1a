import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from ckgconv import InputError, pack
from ckgconv.pe import rd, resistance
from ckgconv.pe.resistance import rd_at

pytestmark = pytest.mark.usefixtures("double")


def drawn(graphs, seed):
    """The graphs with weights, and what `rd` says of a part of their pairs."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(sum(index.shape[1] for _, index in graphs), generator=generator) + 0.1
    batch = packed(*graphs, weights=weights.requires_grad_())
    every = rd(batch)
    some = torch.rand(every.receiver.shape, generator=generator) < 0.7
    return batch, every.receiver[some], every.sender[some], every.values[some]


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 2**31), st.integers(4, 200))
def test_equals_the_resistances_of_all_pairs_with_their_gradient(graphs, seed, block):
    """Directed and weighted, with several components, isolated nodes and parallel edges as they fall."""
    batch, receiver, sender, expected = drawn(graphs, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(resistance, "BLOCK", block)
        found = rd_at(batch, receiver, sender)
        finite = expected.isfinite()
        assert torch.equal(found.isfinite(), finite)
        torch.testing.assert_close(found[finite], expected[finite], rtol=1e-10, atol=1e-10)
        if not finite.any():
            return
        share = torch.randn(int(finite.sum()))
        (gradient,) = torch.autograd.grad(found[finite] @ share, batch.edge_weight)
    (dense,) = torch.autograd.grad(expected[finite] @ share, batch.edge_weight)
    torch.testing.assert_close(gradient, dense, rtol=1e-8, atol=1e-9)


def test_gradient_by_finite_differences():
    index = torch.tensor([[0, 1, 2, 0, 4, 5], [1, 2, 3, 3, 4, 6]])
    weights = torch.rand(6, requires_grad=True)
    receiver, sender = torch.tensor([0, 0, 1, 2, 5]), torch.tensor([1, 2, 3, 2, 6])
    assert gradcheck(lambda given: rd_at(pack(index, num_nodes=7, edge_weight=given), receiver, sender), (weights,))


def test_a_pair_and_its_mirror_have_the_same_bits():
    graphs = pack(random_edges(40, 60, 0), num_nodes=40)
    every = rd(graphs)
    found = rd_at(graphs, every.receiver, every.sender).view(40, 40)
    assert torch.equal(found, found.mT)
    assert not found.diagonal().any()


def test_a_long_path_keeps_its_digits():
    path = torch.stack([torch.arange(4999), torch.arange(1, 5000)])
    place = torch.tensor([0, 0, 1000, 2500]), torch.tensor([1, 4999, 1002, 4000])
    found = rd_at(pack(path, num_nodes=5000, edge_weight=torch.full((4999,), 2.0)), *place)
    torch.testing.assert_close(found.squeeze(-1), (place[1] - place[0]).double(), rtol=1e-10, atol=0)


def test_dtype_refusals_and_no_pairs():
    index = torch.tensor([[0, 1], [1, 2]])
    none = torch.zeros(0, dtype=torch.int64)
    assert rd_at(pack(index, num_nodes=3), none, none, torch.float32).shape == (0, 1)
    assert rd_at(pack(index, num_nodes=3), none + 0, none, torch.float32).dtype == torch.float32
    with pytest.raises(InputError, match="spans a factor of"):
        rd_at(pack(index, num_nodes=3, edge_weight=torch.tensor([1.0, 1e-12])), none, none)
