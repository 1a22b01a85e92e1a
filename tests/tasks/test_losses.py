import pytest
import torch

from ckgconv.recipes import RECIPES, recipe
from ckgconv.tasks.losses import LOSSES, binary, cross_entropy, l1, weighted_binary, weighted_cross_entropy

pytestmark = pytest.mark.usefixtures("double")


def test_weighted_cross_entropy_divides_by_the_weights_and_ignores_absent_classes():
    prediction, target = torch.randn(10, 6), torch.tensor([0, 0, 0, 1, 1, 3, 3, 3, 3, 3])
    weight = {0: 0.7, 1: 0.8, 3: 0.5}
    logs = prediction.log_softmax(-1)
    terms = [(weight[c], -weight[c] * logs[row, c]) for row, c in enumerate(target.tolist())]
    expected = sum(term for _, term in terms) / sum(share for share, _ in terms)
    torch.testing.assert_close(weighted_cross_entropy(prediction, target), expected)


def test_weighted_binary_divides_by_the_nodes():
    logits, target = torch.randn(5, 1), torch.tensor([0, 1, 0, 0, 0])
    probability = logits.squeeze(-1).sigmoid()
    weight = torch.where(target == 1, 0.8, 0.2)
    likelihood = torch.where(target == 1, probability, 1 - probability)
    torch.testing.assert_close(weighted_binary(logits, target), -(weight * likelihood.log()).sum() / 5)
    one_class = weighted_binary(logits, torch.zeros(5, dtype=torch.int64))
    assert one_class == 0  # V - V_c = 0


def test_plain_losses():
    prediction = torch.tensor([[1.0, -1.0], [0.0, 2.0]])
    assert l1(prediction[:, :1], torch.tensor([0.0, 3.0])) == 2
    torch.testing.assert_close(l1(prediction, torch.zeros(2, 2)), torch.tensor(1.0))
    torch.testing.assert_close(
        cross_entropy(prediction, torch.tensor([0, 1])), -prediction.log_softmax(-1).diagonal().mean()
    )
    labels = torch.tensor([[1, 0], [0, 1]])
    chosen = torch.where(labels == 1, prediction.sigmoid(), 1 - prediction.sigmoid())
    torch.testing.assert_close(binary(prediction, labels), -chosen.log().mean())


def test_every_recipe_names_a_loss():
    assert {recipe(name).training.loss for name in RECIPES} == set(LOSSES)
