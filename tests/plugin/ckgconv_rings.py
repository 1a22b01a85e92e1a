"""One of everything that a package of one's own can add to ckgconv, by the entry points of its pyproject.toml.

    ckgconv train rings

trains the model of this file on the data of this file, with its coordinate, loss, metric and optimiser.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F
from torchmetrics import SymmetricMeanAbsolutePercentageError

from ckgconv.data import PackedDataset
from ckgconv.data.catalogue import Entry
from ckgconv.data.packed import from_arrays
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.nn import CKGCN
from ckgconv.pe import PseudoCoordinate
from ckgconv.pe.layout import PairReader
from ckgconv.pe.walk import transition
from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, DataRecipe, HeadRecipe, Recipe, TrainingRecipe
from ckgconv.tasks.task import Loss, Metric, Total, one_process

RESTART = 0.15


def pagerank(graphs: PackedGraphs, steps: int, dtype: torch.dtype) -> Coordinates:
    """Personalised PageRank α (I - (1 - α) M)⁻¹ of every pair, [P, 1]."""
    walk = transition(graphs, torch.float64)
    identity = torch.eye(walk.shape[-1], dtype=walk.dtype, device=walk.device)
    ranks = RESTART * torch.linalg.inv(identity - (1 - RESTART) * walk)
    pairs = PairReader(graphs)
    return pairs.coordinates(pairs.read(ranks).unsqueeze(-1).to(dtype))


PAGERANK = PseudoCoordinate(
    pagerank,
    channels=lambda steps: 1,
    reading="normalised",
    rescaled=True,
    diagonal_skips=0,
    least_steps=0,
    bytes_per_cell=32,
    source="{name}",
)


def log_cosh(prediction: Tensor, target: Tensor, total: Total = one_process) -> Tensor:
    """Mean of log cosh(ŷ - y) over known targets."""
    target = target.reshape(prediction.shape).to(prediction.dtype)
    known = target.isfinite()
    error = (prediction - target).where(known, 0.0)
    terms = error + F.softplus(-2 * error) - math.log(2)
    return terms.where(known, 0.0).sum() / total(known.sum()).clamp(min=1)


LOG_COSH = Loss(log_cosh, targets="values")
SMAPE = Metric(lambda outputs: SymmetricMeanAbsolutePercentageError(), targets="values", higher_is_better=False)


def nadam(parameters: Iterable[torch.nn.Parameter], recipe: TrainingRecipe) -> torch.optim.Optimizer:
    return torch.optim.NAdam(parameters, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)


def draw_rings(folder: Path) -> PackedDataset:
    """Rings of 4 to 12 nodes; the target is their size."""
    sizes = torch.arange(30) % 9 + 4
    steps = [torch.arange(size) for size in sizes.tolist()]
    one_way = torch.cat([torch.stack([step, (step + 1) % len(step)]) for step in steps], dim=1)
    edges = [torch.cat([part, part.flip(0)], dim=1) for part in one_way.split(sizes.tolist(), dim=1)]
    order = torch.arange(30)
    return from_arrays(
        {
            "num_nodes": sizes,
            "num_edges": 2 * sizes,
            "edge_index": torch.cat(edges, dim=1),
            "x": torch.zeros(int(sizes.sum()), 1, dtype=torch.int64),
            "y": sizes.float().unsqueeze(-1),
            "train_idx": order[:18],
            "val_idx": order[18:24],
            "test_idx": order[24:],
        }
    )


RINGS = Entry(None, "size of a ring, one value per graph", load=draw_rings)


@dataclass(frozen=True, kw_only=True)
class ScaledRecipe(CKGCNRecipe):
    """A CKGCN whose outputs are multiplied by a number."""

    kind: str = "scaled_ckgcn"
    output_scale: float = 1.0


class ScaledCKGCN(CKGCN):
    """output_scale · CKGCN."""

    Recipe = ScaledRecipe

    def forward(self, data):
        return self.recipe.output_scale * super().forward(data)


def rings_recipe() -> Recipe:
    return Recipe(
        name="rings",
        data=DataRecipe("rings"),
        model=ScaledRecipe(
            width=8,
            blocks=1,
            node=AttributeRecipe("types", (1,)),
            edge=AttributeRecipe("none"),
            head=HeadRecipe("pyramid", "mean", layers=1, outputs=1),
            encoding="pagerank",
            steps=0,
            output_scale=4.0,
        ),
        training=TrainingRecipe(
            "log_cosh",
            "smape",
            epochs=6,
            warmup_epochs=1,
            batch_size=6,
            learning_rate=0.02,
            optimizer="nadam",
        ),
    )
