import numpy as np
import pytest
import torch
from graphs_for_tests import random_edges
from scipy.special import eval_chebyt
from torch_geometric.nn import APPNP, ChebConv
from torch_geometric.utils import coalesce, remove_self_loops

from ckgconv.theory import bernstein, chebyshev, laplacian_monomials, personalised_pagerank, polynomial_filter

pytestmark = pytest.mark.usefixtures("double")

NODES = 14
EDGES = coalesce(remove_self_loops(random_edges(NODES - 1, 20, 5))[0])  # the last node is isolated
X = torch.randn(NODES, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
THETA = np.random.default_rng(0).normal(size=5)


def spectrum():
    adjacency = torch.zeros(NODES, NODES)
    adjacency[EDGES[0], EDGES[1]] = 1
    degree = adjacency.sum(1)
    root = degree.rsqrt().masked_fill(degree == 0, 0)
    return torch.linalg.eigh(torch.eye(NODES) - root[:, None] * adjacency * root)


def exact(response):
    """g(L) x by the full eigendecomposition."""
    values, vectors = spectrum()
    return vectors @ (torch.as_tensor(response(values.numpy()))[:, None] * (vectors.mT @ X))


def filtered(coefficients):
    return polynomial_filter(coefficients, channels=3)(X, EDGES)


def test_monomials_of_the_laplacian():
    response = exact(lambda eigenvalue: sum(t * eigenvalue**k for k, t in enumerate(THETA)))
    torch.testing.assert_close(filtered(laplacian_monomials(THETA)), response, rtol=0, atol=1e-10)


def test_chebyshev_filter_by_spectrum_and_by_pyg():
    response = exact(lambda eigenvalue: sum(t * eval_chebyt(k, eigenvalue - 1) for k, t in enumerate(THETA)))
    ours = filtered(chebyshev(THETA))
    torch.testing.assert_close(ours, response, rtol=0, atol=1e-10)
    theirs = ChebConv(3, 3, K=len(THETA), normalization="sym", bias=False)
    with torch.no_grad():
        for linear, theta in zip(theirs.lins, THETA, strict=True):
            linear.weight.copy_(theta * torch.eye(3))
    torch.testing.assert_close(ours, theirs(X, EDGES, lambda_max=2.0), rtol=0, atol=1e-10)


def test_bernstein_filter():
    order = len(THETA) - 1

    def response(eigenvalue):
        terms = [
            t * _binomial(order, k) / 2**order * (2 - eigenvalue) ** (order - k) * eigenvalue**k
            for k, t in enumerate(THETA)
        ]
        return sum(terms)

    torch.testing.assert_close(filtered(bernstein(THETA)), exact(response), rtol=0, atol=1e-10)
    torch.testing.assert_close(filtered(bernstein(np.ones(5))), X, rtol=0, atol=1e-10)  # they sum to one


def _binomial(n, k):
    return float(np.prod([(n - i) / (i + 1) for i in range(k)]))


def test_generalised_and_personalised_pagerank():
    response = exact(lambda eigenvalue: sum(t * (1 - eigenvalue) ** k for k, t in enumerate(THETA)))
    torch.testing.assert_close(filtered(THETA), response, rtol=0, atol=1e-10)
    theirs = APPNP(K=8, alpha=0.15, add_self_loops=False)
    ours = filtered(personalised_pagerank(0.15, 8))
    torch.testing.assert_close(ours, theirs(X, EDGES), rtol=0, atol=1e-10)


def test_vanishing_leading_terms_keep_the_order():
    assert len(chebyshev(np.array([1.0, 2.0, 0.0]))) == 3
    assert len(laplacian_monomials(np.array([1.0, 0.0, 0.0]))) == 3
