import pytest
import torch
from torch import nn

from ckgconv.studies.toy import Fit, Toy, accuracy, both_directions, column, cycle, decision_note, fit, loss_test


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x, edge_index):
        return self.linear(x)


def test_losses_are_compared_by_a_t_test():
    one, other = ([Fit((), loss, 100, 100) for loss in losses] for losses in ([0.1, 0.2, 0.3], [0.7, 0.8, 0.9]))
    assert loss_test(one, other) == pytest.approx(0.0018, rel=0.1)
    assert loss_test(one, one) is None
    assert loss_test(one[:1], other[:1]) is None


def test_a_fit_is_repeatable_and_leaves_the_random_state_alone():
    signal = column([0.0, 1.0])
    toy = Toy(both_directions([(0, 1)]), signal, signal)
    before = torch.random.get_rng_state()
    first, second = (fit(Scale, toy, seed=3, learning_rate=0.1, epochs=100) for _ in range(2))
    assert first == second
    assert torch.equal(torch.random.get_rng_state(), before)
    assert len(first.curve) == 100
    assert first.outcome == {"loss": first.loss, "accuracy": 100, "sign_accuracy": 100}
    assert first.loss < first.curve[0]


def test_cycle_has_both_directions():
    assert sorted(map(tuple, cycle([0, 2, 1]).T.tolist())) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_a_logit_next_to_zero_decides_nothing():
    label = column([0.0, 1.0, 1.0, 0.0])
    assert accuracy(column([-1.0, 1.0, 1e-8, 1e-8]), label, 1e-4) == 75
    assert accuracy(column([-1.0, 1.0, 1e-8, -1e-8]), label, 0.0) == 100
    steady, noisy = Fit((), 0.7, 50.0, 50.0), Fit((), 0.7, 50.0, 75.0)
    assert decision_note({"a": [steady]}).endswith("none changes an accuracy here.")
    assert decision_note({"a": [steady], "b": [steady, noisy]}).endswith("if its sign decided: b 62.5 ± 12 %.")
