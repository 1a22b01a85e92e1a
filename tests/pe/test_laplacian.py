"""Eigenvectors of the Laplacian: exact, of length one, with signs that no numbering changes."""

import pytest
import torch
from graphs_for_tests import molecule, packed, random_edges

from ckgconv import InputError
from ckgconv.pe import COORDINATES, eigenvectors, laplacian_products, spectral_products, spectrum
from ckgconv.pe.heat import laplacian

pytestmark = pytest.mark.usefixtures("double")

# The smallest tree without symmetry: legs of one, two and three nodes at a body.
LEGS = torch.tensor([[0, 0, 2, 0, 4, 5], [1, 2, 3, 4, 5, 6]])
SPIDER = torch.cat([LEGS, LEGS.flip(0)], dim=1)
PATH = torch.tensor([[0, 1, 1, 2, 2, 3, 1, 4], [1, 0, 2, 1, 3, 2, 4, 1]])


def test_they_are_the_eigenvectors_of_every_graph():
    sizes = (5, 9, 1)
    graphs = packed((5, PATH), (9, random_edges(9, 14, 2)), (1, torch.zeros(2, 0, dtype=torch.int64)))
    found = eigenvectors(graphs, 6)
    assert found.shape == (15, 6)
    assert found.is_contiguous()
    start = 0
    for number, size in enumerate(sizes):
        matrix = laplacian(graphs)[number, :size, :size]
        own, values = found[start : start + size], torch.linalg.eigvalsh(matrix)
        kept = min(size - 1, 6)
        torch.testing.assert_close(matrix @ own[:, :kept], own[:, :kept] * values[1 : kept + 1])
        torch.testing.assert_close(own[:, :kept].T @ own[:, :kept], torch.eye(kept))
        assert (own[:, kept:] == 0).all()
        start += size


def test_no_numbering_changes_a_sign():
    order = torch.tensor([3, 0, 6, 4, 1, 5, 2])
    moved = packed((7, order.argsort()[SPIDER]))
    torch.testing.assert_close(eigenvectors(moved, 6), eigenvectors(packed((7, SPIDER)), 6)[order])


def test_a_graph_is_the_same_in_every_batch():
    star = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])  # its eigenvalues coincide
    alone = eigenvectors(packed((4, star)), 3)
    together = eigenvectors(packed((9, random_edges(9, 14, 2)), (4, star)), 3)
    assert torch.equal(together[9:], alone)


def test_products_have_no_sign():
    data = molecule(8, 0)
    graphs = packed((8, data.edge_index))
    vectors, products = eigenvectors(graphs, 3), laplacian_products(graphs, 3)
    torch.testing.assert_close(products.values.view(8, 8, 3), vectors.unsqueeze(1) * vectors.unsqueeze(0))
    assert COORDINATES["laplacian"].node_channels(3, 7) == 3
    assert eigenvectors(graphs, 3, torch.float32).dtype == torch.float32


def test_no_graphs_and_no_vectors():
    assert eigenvectors(packed((0, torch.zeros(2, 0, dtype=torch.int64))), 3).shape == (0, 3)
    with pytest.raises(InputError, match="steps is 0: give at least 1 eigenvector"):
        eigenvectors(packed((5, PATH)), 0)


def test_the_spectrum_has_the_eigenvalues_of_each_graph():
    graphs = packed((5, PATH), (9, random_edges(9, 14, 2)), (1, torch.zeros(2, 0, dtype=torch.int64)))
    found, start = spectrum(graphs, 6), 0
    assert torch.equal(found[:, :6], eigenvectors(graphs, 6))
    for number, size in enumerate((5, 9, 1)):
        values = torch.linalg.eigvalsh(laplacian(graphs)[number, :size, :size])[1:7]
        own = found[start : start + size, 6:]
        torch.testing.assert_close(own[:, : len(values)], values.expand(size, -1))
        assert (own[:, len(values) :] == 0).all()
        start += size
    assert COORDINATES["spectrum"].node_channels(6, 7) == 12


def test_pairs_of_the_spectrum_are_products_and_eigenvalues():
    graphs = packed((5, PATH))
    pairs, vectors = spectral_products(graphs, 3).values, spectrum(graphs, 3)
    assert torch.equal(pairs[:, :3], laplacian_products(graphs, 3).values)
    assert torch.equal(pairs[:, 3:], vectors[:1, 3:].expand(25, -1))
