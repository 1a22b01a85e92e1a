"""The paper's toy tasks: one small graph, a scalar signal per node, a binary label per node.

Legend: N nodes, E edges.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Toy:
    """One graph whose labels are to be fitted."""

    edge_index: Tensor  # [2, E] int64, both directions
    signal: Tensor  # [N, 1]
    label: Tensor  # [N, 1] 0 or 1


@dataclass(frozen=True)
class Fit:
    """One training: losses by epoch and, of the trained network, loss and accuracy on the graph it was trained on."""

    curve: tuple[float, ...]  # binary cross-entropy before each step
    loss: float
    accuracy: float  # percent

    @property
    def outcome(self) -> dict[str, float]:
        """What a table keeps of it."""
        return {"loss": self.loss, "accuracy": self.accuracy}


def fit(build: Callable[[], nn.Module], toy: Toy, seed: int, learning_rate: float, epochs: int) -> Fit:
    """Train `build()`, a module from (signal, edge_index) to logits [N, 1], with Adam.

    The caller's random state is left as it was.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build()
        optimiser = torch.optim.Adam(network.parameters(), lr=learning_rate)
        curve = []
        for _ in range(epochs):
            optimiser.zero_grad()
            loss = F.binary_cross_entropy_with_logits(network(toy.signal, toy.edge_index), toy.label)
            loss.backward()
            optimiser.step()
            curve.append(loss.item())
    # In training mode still: the studies ask what a convolution can fit, not how running statistics follow.
    with torch.no_grad():
        logits = network(toy.signal, toy.edge_index)
        loss = F.binary_cross_entropy_with_logits(logits, toy.label)
    hits = (logits > 0) == (toy.label > 0.5)
    return Fit(tuple(curve), loss.item(), 100 * hits.float().mean().item())


def cycle(order: list[int]) -> Tensor:
    """[2, E] the cycle through the nodes in that order, both directions."""
    return both_directions(list(zip(order, [*order[1:], order[0]], strict=True)))


def both_directions(edges: list[tuple[int, int]]) -> Tensor:
    """[2, E] from one direction of each edge."""
    index = torch.tensor(edges).T
    return torch.cat([index, index.flip(0)], dim=1)
