"""What the passes of every model read of a batch: its pairs by sender, and how many of its nodes are real.

Legend: N nodes, P pairs.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.convolution import sender_lists


def sorted_by_sender(pairs: Pairs) -> Pairs:
    """The same pairs with their order by senders."""
    if sender_lists(pairs) is not None:
        return pairs
    sender, rows = torch.sort(pairs.sender, stable=True)
    nodes = torch.arange(pairs.rowptr.shape[0], device=rows.device)
    pointer = torch.searchsorted(sender, nodes)
    return replace(pairs, sender_ptr=pointer, sender_rows=rows, sender_receiver=pairs.receiver[rows])


def filled_nodes(batch: GraphBatch) -> Tensor:
    """[1] int64, nodes from there on are padding; N where none is."""
    if batch.node_filled is not None:
        return batch.node_filled
    return torch.full((1,), batch.degree.shape[0], device=batch.degree.device)
