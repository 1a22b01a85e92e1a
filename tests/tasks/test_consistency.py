"""Predictions under several draws of dropout should agree."""

import pytest
import torch

from ckgconv.tasks.consistency import consistency, sharpened

pytestmark = pytest.mark.usefixtures("double")


def test_equals_its_equation():
    draws = torch.randn(3, 5, 4)
    p = draws.softmax(-1)
    q = p.mean(0).pow(2)
    q = q / q.sum(-1, keepdim=True)
    expected = sum((each - q).square().sum() for each in p) / (3 * 5)
    torch.testing.assert_close(consistency(list(draws), 0.5), expected)
    torch.testing.assert_close(sharpened(p.mean(0), 1.0), p.mean(0))


def test_a_small_temperature_leaves_the_most_probable_class():
    probabilities = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    torch.testing.assert_close(sharpened(probabilities, 1e-3), torch.tensor([[1.0, 0, 0], [1.0, 0, 0]]))


def test_gradients_flow_through_the_draws_alone():
    logits = torch.randn(2, 4, 3, requires_grad=True)
    consistency(list(logits), 0.5).backward()
    p = logits.detach().softmax(-1).requires_grad_()
    q = sharpened(p.detach().mean(0), 0.5)
    ((p - q).square().sum() / 8).backward()
    expected = p.detach() * (p.grad - (p.grad * p.detach()).sum(-1, keepdim=True))
    torch.testing.assert_close(logits.grad, expected)


def test_shares_of_processes_add_up():
    draws = torch.randn(2, 6, 3)
    rows = torch.tensor(6.0)
    shares = [consistency([each[part] for each in draws], 0.5, lambda count: rows) for part in (slice(2), slice(2, 6))]
    torch.testing.assert_close(sum(shares), consistency(list(draws), 0.5))


def test_a_batch_without_rows_costs_nothing():
    assert consistency([torch.zeros(0, 3), torch.zeros(0, 3)], 0.5) == 0
