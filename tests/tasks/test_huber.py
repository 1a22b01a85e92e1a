import pytest
import torch
from torch.autograd import gradcheck

from ckgconv.recipes import recipe, with_value
from ckgconv.tasks.huber import huber
from ckgconv.tasks.losses import LOSSES, one_process

pytestmark = pytest.mark.usefixtures("double")


def test_square_for_small_errors_and_straight_for_large_ones():
    prediction = torch.tensor([[0.5], [-3.0]])
    assert huber(prediction, torch.zeros(2)) == pytest.approx((0.5 * 0.25 + 1 * (3 - 0.5)) / 2)
    assert huber(prediction, torch.zeros(2), huber_delta=2.0) == pytest.approx((0.5 * 0.25 + 2 * (3 - 1)) / 2)
    # With a large δ it is half the mean square.
    assert huber(prediction, torch.zeros(2), huber_delta=1e3) == pytest.approx((0.25 + 9) / 4)


@pytest.mark.parametrize("delta", [0.3, 1.0, 5.0])
def test_gradients_are_those_of_the_value(delta):
    prediction = torch.randn(7, 2, requires_grad=True)
    target = torch.randn(7, 2)
    target[2, 1] = torch.nan
    assert gradcheck(lambda values: huber(values, target, huber_delta=delta), prediction)
    (gradient,) = torch.autograd.grad(huber(prediction, target, huber_delta=delta), prediction)
    assert gradient[2, 1] == 0
    assert float(gradient.abs().max()) <= delta / 13 + 1e-12  # the bound for an outlier; 13 targets are known


def test_delta_is_a_value_of_the_recipe():
    chosen = with_value(with_value(recipe("zinc"), "training.loss=huber"), "training.huber_delta=0.5").training
    prediction, target = torch.randn(5, 1), torch.randn(5)
    bound = LOSSES[chosen.loss].of(chosen)
    assert bound(prediction, target, one_process) == huber(prediction, target, huber_delta=0.5)
    assert bound(prediction, target, one_process) != huber(prediction, target)
