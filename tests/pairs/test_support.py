"""Covers `ckgconv.pairs.collate` and `ckgconv.pairs.encoding`."""

import pytest
import torch
from graphs_for_tests import edge_lists, packed, random_edges
from hypothesis import given
from hypothesis import strategies as st

from ckgconv import InputError, pack
from ckgconv.pairs import Encoding, given_support, global_support, hop_support
from ckgconv.pe import pairs_within, rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")


@given(st.lists(edge_lists(), min_size=1, max_size=4))
def test_global_support_is_csr_over_receivers(graphs):
    batch = packed(*graphs)
    pairs = global_support(batch, rrwp(batch, 3))
    for receiver in range(batch.num_nodes):
        rows = slice(int(pairs.rowptr[receiver]), int(pairs.rowptr[receiver + 1]))
        assert (pairs.receiver[rows] == receiver).all()
        own = batch.node_graph == batch.node_graph[receiver]
        assert torch.equal(pairs.sender[rows], own.nonzero().squeeze(-1))
    assert torch.equal(pairs.support_size, pairs.rowptr.diff().double())


@given(st.lists(edge_lists(), min_size=1, max_size=4), st.integers(0, 4))
def test_zero_rows_stand_for_every_pair_not_stored(graphs, steps):
    batch = packed(*graphs)
    pairs = global_support(batch, sparse_rrwp(batch, steps))
    assert pairs.has_zero_rows
    assert not pairs.coordinates[pairs.num_pairs :].any()
    for graph in range(batch.num_graphs):
        stored = (batch.node_graph[pairs.receiver] == graph).sum()
        assert stored + pairs.row_weight[pairs.num_pairs + graph] == batch.sizes[graph] ** 2
    # Edges are stored even where no walk follows them, since they may carry attributes.
    keys = set(zip(pairs.sender.tolist(), pairs.receiver.tolist(), strict=True))
    assert {tuple(edge) for edge in batch.edge_index.T.tolist()} <= keys


def test_zero_weight_edge_is_stored_with_zero_coordinates():
    graphs = pack(torch.tensor([[1], [0]]), num_nodes=3, edge_weight=torch.zeros(1))
    pairs = global_support(graphs, sparse_rrwp(graphs, 2))
    assert list(zip(pairs.receiver.tolist(), pairs.sender.tolist(), strict=True)) == [(0, 0), (0, 1), (1, 1), (2, 2)]
    assert not pairs.coordinates[1].any()
    assert pairs.row_weight[-1] == 9 - 4


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(0, 3), st.sampled_from([rrwp, sparse_rrwp]))
def test_hop_support_keeps_all_channels_whatever_the_order(graphs, hops, encode):
    batch = packed(*graphs)
    pairs, everything = hop_support(batch, encode(batch, 2), hops), rrwp(batch, 2)
    receiver, sender = pairs_within(batch, hops)
    assert torch.equal(pairs.receiver, receiver)
    for row, (i, j) in enumerate(zip(receiver.tolist(), sender.tolist(), strict=True)):
        there = (everything.receiver == i) & (everything.sender == j)
        torch.testing.assert_close(pairs.coordinates[row], everything.values[there].squeeze(0), rtol=0, atol=1e-13)


def test_given_support_in_any_order_and_with_empty_rows():
    graphs = pack(random_edges(4, 6, 0), num_nodes=4)
    pairs = given_support(graphs, rrwp(graphs, 2), torch.tensor([[0, 2, 1], [3, 0, 3]]))
    assert pairs.receiver.tolist() == [0, 3, 3]
    assert pairs.sender.tolist() == [2, 0, 1]
    assert pairs.rowptr.tolist() == [0, 1, 1, 1, 3]
    assert pairs.support_size.tolist() == [1, 0, 0, 2]


def test_refusals():
    graphs = packed((2, random_edges(2, 1, 0)), (2, random_edges(2, 1, 0)))
    coordinates = rrwp(graphs, 1)
    with pytest.raises(InputError, match="different graphs"):
        given_support(graphs, coordinates, torch.tensor([[0], [3]]))
    with pytest.raises(InputError, match="repeats"):
        given_support(graphs, coordinates, torch.tensor([[0, 0], [1, 1]]))
    with pytest.raises(InputError, match="pair_index contains 9"):
        given_support(graphs, coordinates, torch.tensor([[0], [9]]))
    with pytest.raises(InputError, match="-1 hops"):
        hop_support(graphs, coordinates, -1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("walks", 3, 0, "global"), "'walks'"),
        (("rrwp", -1, 0, "global"), "steps is -1"),
        (("rrwp", 3, 0, "local"), "'local'"),
        (("spd", 3, 0, "sparse_global"), "needs coordinates that are zero"),
    ],
)
def test_unknown_encodings_and_supports_are_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        Encoding(*arguments)
