"""The mean absolute difference by a Triton kernel against its equation: unknown targets, ties, NaN predictions."""

import pytest
import torch
from on_device import DEVICE, needs_triton

from ckgconv.ops.mean_absolute_error import naive

pytestmark = needs_triton


@pytest.mark.parametrize("unknown", [0, 5, 12])
def test_value_and_gradient(unknown):
    from ckgconv.ops.mean_absolute_error import triton as fused

    prediction, target = torch.randn(4, 3), torch.randn(4, 3)
    prediction[0, 0] = target[0, 0]
    target.view(-1)[torch.randperm(12)[:unknown]] = float("nan")
    exact, rough = prediction.double().requires_grad_(), prediction.to(DEVICE).requires_grad_()
    expected, found = (
        naive.mean_absolute_error(exact, target.double()),
        fused.mean_absolute_error(rough, target.to(DEVICE)),
    )
    torch.testing.assert_close(found.cpu().double(), expected, rtol=1e-6, atol=1e-7)
    (3 * expected).backward()
    (3 * found).backward()
    torch.testing.assert_close(rough.grad.cpu().double(), exact.grad, rtol=1e-6, atol=1e-7)


def test_infinite_targets_are_unknown_and_a_prediction_that_is_no_number_shows():
    from ckgconv.ops.mean_absolute_error import triton as fused

    target = torch.tensor([float("inf"), 1.0, float("-inf")], device=DEVICE)
    assert float(fused.mean_absolute_error(torch.tensor([0.0, 3.0, 0.0], device=DEVICE), target)) == 2.0
    prediction = torch.tensor([0.0, float("nan"), 0.0], device=DEVICE, requires_grad=True)
    loss = fused.mean_absolute_error(prediction, target)
    loss.backward()
    assert loss.isnan()
    assert prediction.grad.isnan().tolist() == [False, True, False]
