import torch
from torch import nn

from ckgconv.studies.toy import Toy, both_directions, cycle, fit


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 1)

    def forward(self, x, edge_index):
        return self.linear(x)


def test_a_fit_is_repeatable_and_leaves_the_random_state_alone():
    signal = torch.tensor([[0.0], [1.0]])
    toy = Toy(both_directions([(0, 1)]), signal, signal)
    before = torch.random.get_rng_state()
    first, second = (fit(Scale, toy, seed=3, learning_rate=0.1, epochs=100) for _ in range(2))
    assert first == second
    assert torch.equal(torch.random.get_rng_state(), before)
    assert len(first.curve) == 100
    assert first.outcome == {"loss": first.loss, "accuracy": 100}
    assert first.loss < first.curve[0]


def test_cycle_has_both_directions():
    assert sorted(map(tuple, cycle([0, 2, 1]).T.tolist())) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]
