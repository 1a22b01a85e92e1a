import math

import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch.nn import functional as F

from ckgconv.nn.coordinates import GaussianEncoder, NormalisedEncoder, TableEncoder, rescaled
from ckgconv.pairs import global_support, hop_support
from ckgconv.pe import UNREACHABLE, rd, rrwp, spd

pytestmark = pytest.mark.usefixtures("double")

GRAPHS = packed((6, random_edges(5, 6, 0)), (4, random_edges(4, 3, 1)))  # node 5 is isolated


def test_random_walks_are_rescaled_by_the_support_and_normalised():
    pairs = hop_support(GRAPHS, rrwp(GRAPHS, 3), 1)
    size = torch.bincount(pairs.receiver, minlength=10)[pairs.receiver]
    torch.testing.assert_close(rescaled(pairs), pairs.coordinates * size[:, None])
    encoder = NormalisedEncoder(4, initial_scale=0.1, inject_degree=False)
    expected = 0.1 * F.batch_norm(rescaled(pairs), None, None, training=True)
    torch.testing.assert_close(encoder(pairs, GRAPHS.degree(torch.float64)), expected)


def test_each_distance_has_a_vector_and_so_has_unreachable():
    encoder = TableEncoder(4, 3)
    pairs = global_support(GRAPHS, spd(GRAPHS, 4))
    encoded = encoder(pairs, torch.zeros(10))
    for distance in range(5):
        here = pairs.coordinates == distance
        torch.testing.assert_close(encoded[here], encoder.table.weight[distance].expand(int(here.sum()), -1))
    apart = pairs.coordinates == UNREACHABLE
    assert apart.any()
    torch.testing.assert_close(encoded[apart], encoder.table.weight[5].expand(int(apart.sum()), -1))


def test_resistances_have_a_gaussian_basis_and_infinity_a_vector():
    encoder = GaussianEncoder(3)
    with torch.no_grad():
        encoder.unreachable.copy_(torch.tensor([7.0, 8.0, 9.0]))
    pairs = global_support(GRAPHS, rd(GRAPHS))
    encoded = encoder(pairs, torch.zeros(10))
    apart = pairs.coordinates.isinf().squeeze(-1)
    assert (encoded[apart] == torch.tensor([7.0, 8.0, 9.0])).all()
    width = encoder.spread.abs() + 0.01
    density = torch.distributions.Normal(encoder.mean, width).log_prob(pairs.coordinates[~apart]).exp()
    torch.testing.assert_close(encoded[~apart], density * math.sqrt(math.pi / 3.14159), rtol=1e-10, atol=0)
    encoded.sum().backward()
    assert all(torch.isfinite(parameter.grad).all() for parameter in encoder.parameters())
