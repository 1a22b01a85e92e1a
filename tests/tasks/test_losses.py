import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensorMode

from ckgconv.recipes import RECIPES, recipe
from ckgconv.tasks.losses import (
    IGNORED,
    LOSSES,
    OF_ONE_KIND,
    binary,
    cross_entropy,
    l1,
    mask_targets,
    one_process,
    weighted_binary,
    weighted_cross_entropy,
)

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
    assert {recipe(name).training.loss for name in RECIPES} <= set(LOSSES)


def example(name, rows, seed):
    """Prediction [rows, T] and targets of the loss's kind."""
    generator = torch.Generator().manual_seed(seed)
    targets = LOSSES[name].targets
    outputs = 1 if name == "weighted_binary" else {"values": 2, "labels": 3, "classes": 5}[targets]
    prediction = torch.randn(rows, outputs, generator=generator)
    if targets == "values":
        return prediction, torch.randn(rows, outputs, generator=generator)
    if targets == "labels":
        return prediction, torch.randint(2, (rows, outputs), generator=generator)
    return prediction, torch.randint(max(outputs, 2), (rows,), generator=generator)


def unknown(name):
    """The target of a row that does not count."""
    return torch.nan if LOSSES[name].targets == "values" else IGNORED


def value_and_gradient(name, prediction, target):
    prediction = prediction.clone().requires_grad_()
    value = LOSSES[name](prediction, target, one_process)
    return value.detach(), torch.autograd.grad(value, prediction)[0]


@pytest.mark.parametrize("name", OF_ONE_KIND)
@given(rows=st.integers(1, 40), seed=st.integers(0, 2**16), share=st.sampled_from([0.0, 0.2, 0.9, 1.0]))
def test_rows_that_do_not_count_are_as_if_left_out(name, rows, seed, share):
    prediction, target = example(name, rows, seed)
    counts = torch.rand(rows, generator=torch.Generator().manual_seed(seed + 1)) < share
    masked = target.clone()
    masked[~counts] = unknown(name)
    # Their predictions must not matter, even if they are NaN.
    spoiled = prediction.clone()
    spoiled[~counts] = torch.nan
    value, gradient = value_and_gradient(name, spoiled, masked)
    if not counts.any():
        assert value == 0
        assert not gradient.any()
        return
    expected, expected_gradient = value_and_gradient(name, prediction[counts], target[counts])
    torch.testing.assert_close(value, expected, rtol=1e-13, atol=1e-15)
    torch.testing.assert_close(gradient[counts], expected_gradient, rtol=1e-13, atol=1e-15)
    assert not gradient[~counts].any()


@pytest.mark.parametrize("name", OF_ONE_KIND)
def test_shares_of_several_processes_add_up_where_rows_do_not_count(name):
    prediction, target = example(name, 12, seed=3)
    target[::3] = unknown(name)
    whole = LOSSES[name](prediction, target, one_process)
    halves = [(prediction[:7], target[:7]), (prediction[7:], target[7:])]
    sums, shares = [], []
    # Each round knows one more sum over both processes: a later sum may depend on an earlier one.
    for _ in range(4):
        terms = [[], []]
        shares = [LOSSES[name](*half, recorder(terms[process], sums)) for process, half in enumerate(halves)]
        sums = [one + other for one, other in zip(*terms, strict=True)]
    torch.testing.assert_close(shares[0] + shares[1], whole)


def recorder(terms, sums):
    """A `total` that records the terms of one process and returns the sums over both, as far as they are known."""

    def total(value):
        terms.append(value)
        return sums[len(terms) - 1] if len(sums) >= len(terms) else value

    return total


@pytest.mark.parametrize("name", OF_ONE_KIND)
def test_losses_have_static_shapes(name):
    prediction, target = example(name, 9, seed=0)
    target[2] = unknown(name)
    # Fake tensors have no values: any shape or host value that depends on one raises.
    with FakeTensorMode(allow_non_fake_inputs=False) as mode:
        fake = [mode.from_tensor(value) for value in (prediction.requires_grad_(), target)]
        LOSSES[name](*fake, one_process).backward()


def test_mask_targets_marks_the_rows_that_do_not_count():
    counts = torch.tensor([True, False])
    assert mask_targets(torch.tensor([3, 4]), counts, "cross_entropy").tolist() == [3, IGNORED]
    assert mask_targets(torch.tensor([[1, 0], [0, 1]]), counts, "binary").tolist() == [[1, 0], [IGNORED, IGNORED]]
    for target in (torch.tensor([-1.0, 4.0]), torch.tensor([-1, 4])):
        for loss in ("l1", "huber"):
            marked = mask_targets(target, counts, loss)
            assert marked[0] == -1  # a value like any other
            assert marked[1].isnan()


def test_outcomes_are_values_or_probabilities_and_classes():
    prediction = torch.tensor([[2.0, -1.0], [0.0, 3.0]])
    for name in ("l1", "huber"):
        values, classes = LOSSES[name].outcome(prediction)
        assert torch.equal(values, prediction)
        assert classes is None
    shares, classes = LOSSES["binary"].outcome(prediction)
    torch.testing.assert_close(shares, prediction.sigmoid())
    assert classes is None
    shares, classes = LOSSES["cross_entropy"].outcome(prediction)
    torch.testing.assert_close(shares.sum(-1), torch.ones(2))
    assert classes.tolist() == [0, 1]
    shares, classes = LOSSES["weighted_binary"].outcome(prediction[:, :1])
    torch.testing.assert_close(shares, prediction[:, :1].sigmoid())
    assert classes.tolist() == [1, 0]
