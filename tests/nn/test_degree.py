import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv.nn.degree import DegreeInjection, DegreeScaler, root
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")


def test_scaler_is_the_equation():
    scaler, y, degree = DegreeScaler(3), torch.randn(4, 3), torch.tensor([0.0, 1.0, 4.0, 2.25])
    expected = y * scaler.theta1 + degree.sqrt()[:, None] * y * scaler.theta2
    torch.testing.assert_close(scaler(y, degree), expected)
    assert repr(scaler) == "DegreeScaler(3)"


def test_injection_is_the_equation_and_keeps_zero_rows_zero():
    graphs = packed((6, random_edges(5, 6, 0)), (4, random_edges(4, 3, 1)))  # node 5 is isolated
    degree = graphs.degree(torch.float64)
    counted = degree.where(degree > 0, 1.0)
    injection = DegreeInjection(3)
    with torch.no_grad():
        for theta in injection.parameters():
            theta.normal_()
    pairs = global_support(graphs, rrwp(graphs, 2))
    left = counted[pairs.receiver].sqrt()[:, None] * injection.theta2
    right = injection.theta3 / counted[pairs.sender].sqrt()[:, None]
    expected = pairs.coordinates * injection.theta1 + left * pairs.coordinates * right
    torch.testing.assert_close(injection(pairs.coordinates, degree, pairs), expected)
    sparse = global_support(graphs, sparse_rrwp(graphs, 2))
    assert not injection(sparse.coordinates, degree, sparse)[sparse.num_pairs :].any()


def test_root_has_a_finite_gradient_at_zero():
    degree = torch.tensor([0.0, 4.0], requires_grad=True)
    root(degree).sum().backward()
    assert degree.grad.tolist() == [0.0, 0.25]
