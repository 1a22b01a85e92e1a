"""Coordinates of a few pairs of large graphs are those of all pairs, at the cost of the few."""

import sys
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch_geometric.data import Data

from ckgconv import CKGConv, InputError, pack
from ckgconv.pairs import Encoding, collate, given_support, global_support, hop_support
from ckgconv.pe import COORDINATES, distances, heat, pairs_within, rwse

pytestmark = pytest.mark.usefixtures("double")

STEPS = {"spd": 3, "rd": 0, "pair_rwse": 5, "heat": 4, "rrwp": 4}
NAMES = list(STEPS)


@pytest.fixture
def sparse_from(monkeypatch):
    """Sets the number of nodes above which not every pair is computed."""
    return lambda nodes: monkeypatch.setattr("ckgconv.pairs.encoding.LARGEST_PADDED", nodes)


def graphs(directed):
    parts = [(30, random_edges(30, 35, 1, directed)), (1, torch.zeros(2, 0, dtype=torch.int64))]
    parts += [(25, random_edges(25, 20, 2, directed)), (8, random_edges(8, 12, 3, directed))]
    weights = torch.rand(sum(index.shape[1] for _, index in parts)) + 0.1
    return packed(*parts, weights=weights)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_hops_of_large_graphs_have_the_same_numbers(name, directed, sparse_from):
    batch, encoding = graphs(directed), Encoding(name, STEPS[name], 3, 2)
    dense = encoding.coordinate.values(batch, encoding.steps, torch.float64)
    expected = encoding.pairs(batch, dense, torch.float64)
    part = encoding.node_part(batch, dense, torch.float64)
    sparse_from(4)
    few = encoding.coordinates(batch, torch.float64)
    assert dense.complete
    assert not few.complete
    found = encoding.pairs(batch, few, torch.float64)
    assert torch.equal(found.receiver, expected.receiver)
    assert torch.equal(found.sender, expected.sender)
    torch.testing.assert_close(found.coordinates, expected.coordinates, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(encoding.node_part(batch, few, torch.float64), part, rtol=0, atol=1e-12)


@pytest.mark.parametrize("support", ["global", 1])
@pytest.mark.parametrize("name", NAMES)
def test_a_support_of_the_users_own_may_have_far_pairs(name, support, sparse_from):
    batch, encoding = graphs(False), Encoding(name, STEPS[name], 3, support)
    receiver = torch.tensor([5, 0, 29, 29, 40, 3])
    chosen = torch.stack([torch.tensor([5, 29, 1, 0, 41, 28]), receiver])
    data = Data(x=torch.rand(batch.num_nodes, 2), edge_index=batch.edge_index, batch=batch.node_graph)
    data.edge_weight, data.support_index = batch.edge_weight, chosen
    expected = collate(data, encoding, torch.float64)
    sparse_from(4)
    found = collate(data, encoding, torch.float64)
    assert torch.equal(found.pairs.receiver, receiver.sort().values)
    torch.testing.assert_close(found.pairs.coordinates, expected.pairs.coordinates, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(found.node_encoding, expected.node_encoding, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_large_graphs_form_no_matrix_of_all_pairs(name, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("formed all pairs")

    for module in (distances, heat, rwse):
        module = sys.modules[module.__module__] if callable(module) else module
        for each in ("adjacency", "all_pairs", "PairReader", "transition"):
            monkeypatch.setattr(module, each, refuse, raising=False)
    nodes = 2_000 if name in ("heat", "rd") else 20_000
    ring = torch.arange(nodes)
    edges = torch.stack([torch.cat([ring, ring.roll(1)]), torch.cat([ring.roll(1), ring])])
    layer = CKGConv(2, 2, pe=name, steps=max(STEPS[name], 1), support=2)
    assert layer(torch.rand(nodes, 2), edges).shape == (nodes, 2)


def test_weights_keep_their_gradient(sparse_from):
    sparse_from(4)
    batch = graphs(False)
    for name in ("rd", "pair_rwse", "heat"):
        weight = batch.edge_weight.clone().requires_grad_()
        values = Encoding(name, STEPS[name], 3, 1).coordinates(replace(batch, edge_weight=weight), torch.float64).values
        (gradient,) = torch.autograd.grad(values[values.isfinite()].square().sum(), weight)
        assert gradient.abs().sum() > 0, name


def test_a_coordinate_without_the_way_computes_all_pairs(sparse_from, monkeypatch):
    batch = graphs(False)
    expected = Encoding("rd", 0, 3, 2).coordinates(batch, torch.float64)
    monkeypatch.setattr("ckgconv.pairs.encoding.COORDINATES", {"mine": replace(COORDINATES["rd"], at_pairs=None)})
    sparse_from(4)
    found = Encoding("mine", 0, 3, 2).coordinates(batch, torch.float64)
    assert found.complete
    assert torch.equal(found.values, expected.values)


def test_coordinates_of_some_pairs_are_never_taken_for_zero(sparse_from):
    sparse_from(4)
    batch = graphs(False)
    for name in ("spd", "rd", "heat"):
        few = Encoding(name, max(STEPS[name], 1), 3, 1).coordinates(batch, torch.float64)
        assert hop_support(batch, few, 0).num_pairs == batch.num_nodes
        words = "for some pairs only, and the others are not zero"
        with pytest.raises(InputError, match=words):
            hop_support(batch, few, 2)
        with pytest.raises(InputError, match=words):
            global_support(batch, few)
        far = torch.tensor([[0], [1]])
        if not ((few.receiver == 0) & (few.sender == 1)).any():
            with pytest.raises(InputError, match=words):
                given_support(batch, few, far)
    some = replace(few, values=few.receiver, zero_elsewhere=True)  # whole numbers are distances
    with pytest.raises(InputError, match=words):
        hop_support(batch, some, 2)


def test_pairs_of_hops_include_the_diagonal(sparse_from):
    sparse_from(4)
    graph = pack(random_edges(9, 5, 0), num_nodes=9)
    coordinates = Encoding("heat", 3, 0, 0).coordinates(graph, torch.float64)
    assert torch.equal(coordinates.receiver, pairs_within(graph, 0)[0])
    assert COORDINATES["heat"].diagonal(coordinates).shape == (9, 3)


@pytest.mark.parametrize("hops", [0, 1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_walks_of_small_graphs_are_read_at_the_support_alone(hops, dtype):
    """Bit by bit those of all pairs."""
    batch, encoding = graphs(True), Encoding("rrwp", 4, 0, hops)
    every = encoding.coordinate.values(batch, encoding.steps, dtype)
    few = encoding.coordinates(batch, dtype)
    assert len(few.values) < len(every.values)
    found, expected = (encoding.pairs(batch, each, dtype) for each in (few, every))
    for name in ("rowptr", "receiver", "sender", "coordinates", "support_size"):
        assert torch.equal(getattr(found, name), getattr(expected, name))
    assert torch.equal(*(encoding.node_part(batch, each, dtype) for each in (few, every)))
