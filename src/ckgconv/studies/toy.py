"""The paper's toy tasks: one small graph, a scalar signal per node, a binary label per node.

Legend: N nodes, E edges.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.studies.report import spread
from ckgconv.studies.t_test import sample, t_test

# A logit closer to zero, a probability of one half to four digits, decides nothing and counts as label 0.
DECIDED = 1e-4


@dataclass(frozen=True)
class Toy:
    """One graph whose labels are to be fitted."""

    edge_index: Tensor  # [2, E] int64, both directions
    signal: Tensor  # [N, 1] float64
    label: Tensor  # [N, 1] float64, 0 or 1


@dataclass(frozen=True)
class Fit:
    """One training: losses by epoch and, of the trained network, loss and accuracy on the graph it was trained on."""

    curve: tuple[float, ...]  # binary cross-entropy before each step
    loss: float
    accuracy: float  # percent
    sign_accuracy: float  # percent, where the sign of any logit, however small, decides

    @property
    def outcome(self) -> dict[str, float]:
        """What a table keeps of it."""
        return {"loss": self.loss, "accuracy": self.accuracy, "sign_accuracy": self.sign_accuracy}


def loss_test(runs: Sequence[Fit], reference: Sequence[Fit]) -> float | None:
    """p of a two-sided t-test between their losses; None for the reference itself, one run, or equal runs."""
    ours, theirs = [run.loss for run in runs], [run.loss for run in reference]
    if runs is reference or len(runs) < 2 or len({*ours}) == len({*theirs}) == 1:
        return None
    return float(f"{t_test(sample(ours), sample(theirs), higher_is_better=False).two_sided:.2g}")


def fit(build: Callable[[], nn.Module], toy: Toy, seed: int, learning_rate: float, epochs: int) -> Fit:
    """Train `build()`, a module from (signal, edge_index) to logits [N, 1], with Adam.

    In float64, so that outputs which tend to a constant do so beyond the digits that rounding decides. The caller's
    random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build().double()
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        curve = []
        for _ in range(epochs):
            optimiser.zero_grad()
            loss = F.binary_cross_entropy_with_logits(network(toy.signal, toy.edge_index), toy.label)
            loss.backward()
            optimiser.step()
            curve.append(loss.item())
    # The network stays in training mode: the studies ask what a convolution can fit, not how running statistics lag.
    with torch.no_grad():
        logits = network(toy.signal, toy.edge_index)
        loss = F.binary_cross_entropy_with_logits(logits, toy.label)
    return Fit(tuple(curve), loss.item(), accuracy(logits, toy.label, DECIDED), accuracy(logits, toy.label, 0.0))


def accuracy(logits: Tensor, label: Tensor, threshold: float) -> float:
    """Percent of nodes whose logit lies on the right side of `threshold`."""
    return 100 * ((logits > threshold) == (label > 0.5)).double().mean().item()


def decision_note(fits: dict[str, list[Fit]]) -> str:
    """The rule for outputs that decide nothing, and what the table would show without it."""
    changed = [
        f"{name} {spread([run.sign_accuracy for run in runs])} %"
        for name, runs in fits.items()
        if any(run.sign_accuracy != run.accuracy for run in runs)
    ]
    rule = f"A logit within {DECIDED:g} of zero, a probability of one half to four digits, counts as label 0"
    return (
        f"{rule}; if its sign decided: {', '.join(changed)}." if changed else f"{rule}; none changes an accuracy here."
    )


def column(values: Sequence[float]) -> Tensor:
    """[N, 1] one value per node."""
    return torch.tensor(values, dtype=torch.float64).unsqueeze(-1)


def cycle(order: list[int]) -> Tensor:
    """[2, E] the cycle through the nodes in that order, both directions."""
    return both_directions(list(zip(order, [*order[1:], order[0]], strict=True)))


def both_directions(edges: list[tuple[int, int]]) -> Tensor:
    """[2, E] from one direction of each edge."""
    index = torch.tensor(edges).T
    return torch.cat([index, index.flip(0)], dim=1)
