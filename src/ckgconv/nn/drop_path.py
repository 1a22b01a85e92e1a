"""DropPath, or stochastic depth: in training, each block skips its branches, but not its norms, for some graphs.

    h ← h + b_g/(1 - p_l) f(h)        b_g = 1 with probability 1 - p_l, else 0, drawn for each block and graph g
    p_l = p l/L                        l = 1 … L, so that late blocks are dropped more often; p = `model.drop_path`

Legend: G graphs, N nodes, L blocks.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ckgconv.checks import check_probability
from ckgconv.graphs import GraphBatch


class DropPath(nn.Module):
    """The factor of the branches of a block: `GraphBatch` → [N, 1], or None in evaluation and where p_l is 0."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        check_probability("drop_path", probability)
        self.probability = probability

    def reset_parameters(self) -> None:
        """Nothing to reset."""

    def forward(self, batch: GraphBatch) -> Tensor | None:
        if not self.drops:
            return None
        # Padding nodes count as one graph more.
        kept = self.draw(batch.num_graphs + 1, batch.degree.device).to(batch.degree.dtype)
        return (kept / (1 - self.probability)).index_select(0, batch.pairs.node_graph).unsqueeze(-1)

    @property
    def drops(self) -> bool:
        """Whether anything can be dropped now."""
        return self.training and self.probability > 0

    def draw(self, graphs: int, device: torch.device) -> Tensor:
        """b [G], whether each graph is kept."""
        return torch.rand(graphs, device=device) >= self.probability

    def extra_repr(self) -> str:
        return f"{self.probability:g}"


def all_paths(paths: Sequence[DropPath], batch: GraphBatch) -> Tensor | None:
    """[L, N] the factors of all blocks, drawn one after the other; None where nothing can be dropped."""
    if not any(path.drops for path in paths):
        return None
    drawn = [path(batch) for path in paths]
    return torch.stack([torch.ones_like(batch.degree) if each is None else each.squeeze(-1) for each in drawn])


def drop_probability(drop_path: float, layer: int, blocks: int) -> float:
    """p_l of block `layer`, counted from 0."""
    return drop_path * (layer + 1) / blocks


def on_path(branch: Tensor, path: Tensor | None) -> Tensor:
    """f(h) [N, D] times the factor of a block [N, 1]; unchanged where there is none."""
    return branch if path is None else branch * path
