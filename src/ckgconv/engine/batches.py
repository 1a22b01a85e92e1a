"""Which graphs, or which seed nodes of one large graph, form the batch of each step.

An epoch is a permutation of the training graphs or nodes, cut into batches; each of several processes takes every
world-th graph of each batch, so that together they train on the batches of a single process.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data import PackedDataset
from ckgconv.recipe import Recipe


def training_batches(graphs: Tensor, batch_size: int, rank: int, world: int) -> Iterator[Tensor]:
    """Graph numbers of this process's share of each batch, shuffled by torch's generator.

    With several processes a last batch of fewer graphs than processes joins the batch before it.
    """
    order = torch.randperm(graphs.shape[0])
    batches = list(graphs[order.to(graphs.device)].split(batch_size))
    if len(batches) > 1 and batches[-1].shape[0] < world:
        batches[-2:] = [torch.cat(batches[-2:])]
    for batch in batches:
        if batch.shape[0] >= world:
            yield batch[rank::world]


def evaluation_batches(graphs: Tensor, batch_size: int, rank: int, world: int) -> Iterator[Tensor]:
    """Graph numbers of this process's share of a split, in order; together the processes take every graph once."""
    yield from (batch for batch in graphs[rank::world].split(batch_size) if batch.shape[0])


def check_sampling(data: PackedDataset, recipe: Recipe, processes: int) -> None:
    """Refuse samples of a large graph that no step could be drawn from."""
    sampling = recipe.training.sampling
    if sampling.kind == "none":
        return
    require(
        data.node_targets,
        f"training.sampling.kind is {sampling.kind!r}, but the targets are of graphs, not of nodes: set it to 'none'.",
    )
    name = "batch_nodes" if sampling.kind == "neighbours" else "parts"
    count, seeds = getattr(sampling, name), len(data.target_rows("train"))
    require(
        count >= processes,
        f"training.sampling.{name} is {count} for {processes} processes, which share it: give at least {processes}.",
    )
    require(seeds >= processes, f"There are {seeds} training nodes for {processes} processes: start fewer processes.")
