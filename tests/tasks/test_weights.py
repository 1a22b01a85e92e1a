import pytest
import torch

from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.task import one_process
from ckgconv.tasks.weights import TargetWeights, fitted_weights

TARGETS = {
    "values": torch.tensor([[1.0, 2.0], [0.5, torch.nan], [3.0, -1.0], [0.0, 0.0]]),
    "labels": torch.tensor([[1.0, 0.0], [0.0, torch.nan], [1.0, 1.0], [0.0, 0.0]]),
    "classes": torch.tensor([1, 0, -1, 1]),
}
NAMES = [name for name, loss in LOSSES.items() if loss.targets != "mixed"]


@pytest.mark.parametrize("name", NAMES)
def test_a_weight_is_a_repetition_and_zero_leaves_a_row_out(name):
    loss = LOSSES[name]
    target = TARGETS[loss.targets]
    prediction = torch.linspace(-2, 2, 8, dtype=torch.float64).view(4, 2)
    prediction = prediction[:, :1] if name == "weighted_binary" else prediction
    target = target if loss.targets == "classes" else target.double()
    plain = loss(prediction, target)
    torch.testing.assert_close(loss(prediction, target, one_process, weight=torch.ones(4)), plain)
    torch.testing.assert_close(loss(prediction, target, one_process, weight=torch.full((4,), 3.0)), 3 * plain)
    if name.startswith("weighted"):
        return  # whose own weights follow from the rows of a batch
    weighted = loss(prediction, target, one_process, weight=torch.tensor([2.0, 0, 1, 1]))
    rows = torch.tensor([0, 0, 2, 3])
    again = loss(prediction[rows], target[rows])
    # Both are sums over the known targets; what differs is their number.
    known = [
        int((each >= 0).sum() if loss.targets != "values" else each.isfinite().sum()) for each in (target, target[rows])
    ]
    torch.testing.assert_close(weighted * known[0], again * known[1])
    each = torch.tensor([[1.0, 0.0]] * 4) if loss.targets != "classes" else None
    if each is not None:
        torch.testing.assert_close(
            loss(prediction, target, one_process, weight=each) * known[0],
            loss(prediction[:, :1], target[:, :1]) * (target[:, :1] == target[:, :1]).sum(),
        )


def test_weights_have_the_mean_one_in_training():
    found = fitted_weights(LOSSES["l1"], False, TARGETS["values"], torch.tensor([1.0, 3.0, 2.0, 2.0]), 2)
    assert found.mean == 2
    assert found.of(TARGETS["values"], torch.tensor([1.0, 3, 2, 2])).tolist() == [0.5, 1.5, 1, 1]
    assert TargetWeights().of(TARGETS["values"], None) is None


def test_balanced_classes_count_the_same_together():
    target = torch.tensor([0, 0, 0, 1, -1])
    found = fitted_weights(LOSSES["cross_entropy"], True, target, None, 3)
    assert found.balance.tolist() == pytest.approx([2 / 3, 2, 0])
    weights = found.of(target, None)
    assert weights[:3].sum() == pytest.approx(float(weights[3]))
    labels = torch.tensor([[1.0, 0.0], [0.0, torch.nan], [0.0, 0.0], [0.0, 0.0]])
    found = fitted_weights(LOSSES["binary"], True, labels, None, 2)
    assert found.of(labels, None)[:, 0].tolist() == pytest.approx([2, 2 / 3, 2 / 3, 2 / 3])
    assert found.of(labels, torch.ones(4))[:, 1].tolist() == [1, 1, 1, 1]  # one class only
