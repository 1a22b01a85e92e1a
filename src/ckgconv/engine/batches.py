"""Which graphs form the batch of each step.

An epoch is a permutation of the training graphs, cut into batches; each of several processes takes every
world-th graph of each batch, so that together they train on the batches of a single process.
"""

from collections.abc import Iterator

import torch
from torch import Tensor


def training_batches(graphs: Tensor, batch_size: int, rank: int, world: int) -> Iterator[Tensor]:
    """Graph numbers of this process's share of each batch, shuffled by torch's generator.

    With several processes a last batch of fewer graphs than processes is left out.
    """
    order = torch.randperm(graphs.shape[0])
    for batch in graphs[order.to(graphs.device)].split(batch_size):
        if batch.shape[0] >= world:
            yield batch[rank::world]


def evaluation_batches(graphs: Tensor, batch_size: int, rank: int, world: int) -> Iterator[Tensor]:
    """Graph numbers of this process's share of a split, in order; together the processes take every graph once."""
    yield from (batch for batch in graphs[rank::world].split(batch_size) if batch.shape[0])
