import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.autograd import gradcheck

from ckgconv.nn.norm import GroupedLayerNorm, GroupedRMSNorm, WeightedBatchNorm

pytestmark = pytest.mark.usefixtures("double")


def matched(channels):
    """Ours and torch's, with the same non-trivial parameters."""
    ours, theirs = WeightedBatchNorm(channels), nn.BatchNorm1d(channels)
    nn.init.normal_(theirs.weight)
    nn.init.normal_(theirs.bias)
    with torch.no_grad():
        ours.scale.copy_(theirs.weight)
        ours.shift.copy_(theirs.bias)
    return ours, theirs


def assert_equal(ours, theirs, x, y, expected, gradient, expected_gradient, tolerance=1e-11):
    for mine, yours in (
        (y, expected),
        (gradient, expected_gradient),
        (ours.running_mean[0], theirs.running_mean),
        (ours.running_variance[0], theirs.running_var),
    ):
        torch.testing.assert_close(mine, yours, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("weights", [None, "ones"])
@pytest.mark.parametrize("training", [True, False])
def test_equals_torch_where_weights_are_one(weights, training):
    ours, theirs = matched(5)
    ours.train(training)
    theirs.train(training)
    x = torch.randn(40, 5, requires_grad=True)
    other = x.detach().clone().requires_grad_()
    for _ in range(2):
        y, expected = ours(x, torch.ones(40) if weights else None), theirs(other)
    (gradient,) = torch.autograd.grad(y.square().sum() + y.sum(), x)
    (expected_gradient,) = torch.autograd.grad(expected.square().sum() + expected.sum(), other)
    assert_equal(ours, theirs, x, y, expected, gradient, expected_gradient)


@given(st.lists(st.integers(0, 5), min_size=2, max_size=12), st.integers(0, 2**31))
def test_a_weight_counts_as_that_many_rows(weights, seed):
    torch.manual_seed(seed)
    weight = torch.tensor(weights)
    if weight.sum() < 2:
        weight[0] = 2
    ours, theirs = matched(3)
    x = torch.randn(len(weights), 3, requires_grad=True)
    repeated = x.detach().repeat_interleave(weight, dim=0).requires_grad_()
    y, expected = ours(x, weight.double()), theirs(repeated)
    owner = torch.arange(len(weights)).repeat_interleave(weight)
    torch.testing.assert_close(y[owner], expected, rtol=1e-11, atol=1e-11)
    # A function of the repeated rows is the weighted function of ours, so gradients agree up to the weights.
    (gradient,) = torch.autograd.grad((weight.unsqueeze(-1) * y.sin()).sum(), x)
    (each,) = torch.autograd.grad(expected.sin().sum(), repeated)
    summed = torch.zeros_like(x).index_add(0, owner, each)
    torch.testing.assert_close(gradient, summed, rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(ours.running_variance[0], theirs.running_var, rtol=1e-11, atol=1e-11)


def test_padding_rows_do_not_count_and_may_hold_anything_finite():
    norm, alone = WeightedBatchNorm(2), WeightedBatchNorm(2)
    x = torch.randn(6, 2)
    padded = torch.cat([x, torch.full((3, 2), 1e6)])
    y = norm(padded, torch.tensor([1.0] * 6 + [0.0] * 3))
    torch.testing.assert_close(y[:6], alone(x))
    torch.testing.assert_close(norm.running_mean, alone.running_mean)


def test_one_row_gives_the_shift_and_a_finite_running_variance():
    norm = WeightedBatchNorm(2)
    assert torch.equal(norm(torch.randn(1, 2)), torch.zeros(1, 2))
    torch.testing.assert_close(norm.running_variance, torch.full((1, 2), 0.9))


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", [WeightedBatchNorm, GroupedLayerNorm])
def test_each_group_is_a_norm_of_its_own(kind, training):
    grouped = kind(4, 3).train(training)
    for parameter in grouped.parameters():
        nn.init.normal_(parameter)
    for group in range(3):
        single = kind(4, 1).train(training)
        single.load_state_dict({name: value[group : group + 1] for name, value in grouped.state_dict().items()})
        x, weight = torch.randn(7, 4), torch.rand(7) * 3
        torch.testing.assert_close(grouped(x, weight, group), single(x, weight))
        for name, buffer in single.named_buffers():
            torch.testing.assert_close(dict(grouped.named_buffers())[name][group], buffer[0])


def test_gradcheck_with_weights():
    norm = WeightedBatchNorm(3)
    weight = torch.tensor([1.0, 0.0, 4.0, 2.0])
    x = torch.randn(4, 3, requires_grad=True)
    assert gradcheck(lambda rows: norm(rows, weight), (x,))


def test_no_row_that_counts_changes_no_statistics():
    norm = WeightedBatchNorm(2)
    assert norm(torch.zeros(0, 2)).shape == (0, 2)
    assert torch.isfinite(norm(torch.randn(3, 2), torch.zeros(3))).all()
    assert torch.equal(norm.running_mean, torch.zeros(1, 2))
    assert torch.equal(norm.running_variance, torch.ones(1, 2))


def test_float32_statistics_of_many_skewed_rows():
    x = torch.rand(300_000, 3, dtype=torch.float64) ** 40
    x[::1000] *= 300
    weights = torch.ones(300_000)
    for rows in (None, weights):
        norm = WeightedBatchNorm(3, skewed=True).float()
        norm(x.float(), None if rows is None else rows.float())
        expected = 0.9 + 0.1 * x.var(0)
        torch.testing.assert_close(norm.running_variance[0].double(), expected, rtol=1e-5, atol=0)


def test_repr():
    assert repr(WeightedBatchNorm(3)) == "WeightedBatchNorm(3, groups=1, initial_scale=1.0)"
    assert repr(GroupedLayerNorm(3, 2)) == "GroupedLayerNorm(3, groups=2)"


def test_running_statistics_keep_float64_whatever_the_default_dtype():
    """0.1 rounded to float32 would move them by 1.5e-9."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        norm = WeightedBatchNorm(3).double()
        x = torch.randn(8, 3, dtype=torch.float64)
        norm(x, torch.ones(8, dtype=torch.float64))
    finally:
        torch.set_default_dtype(before)
    torch.testing.assert_close(norm.running_mean[0], 0.1 * x.mean(0), rtol=0, atol=1e-15)
    torch.testing.assert_close(norm.running_variance[0], 0.9 + 0.1 * x.var(0), rtol=0, atol=1e-15)


def test_rms_norm_divides_each_row_by_its_root_mean_square():
    norm = GroupedRMSNorm(4, groups=2)
    nn.init.normal_(norm.scale)
    x = torch.randn(7, 4, requires_grad=True)
    for group in (0, 1):
        wanted = norm.scale[group] * x / (x.square().mean(1, keepdim=True) + 1e-5).sqrt()
        torch.testing.assert_close(norm(x, torch.rand(7), group), wanted)
    assert gradcheck(lambda values: norm(values, None, 1), x)
    torch.testing.assert_close(norm.half()(x.half()).double(), norm.double()(x.half().double()), rtol=1e-2, atol=1e-2)
    norm.reset_parameters()
    assert (norm.scale == 1).all()
    assert repr(norm) == "GroupedRMSNorm(4, groups=2)"
