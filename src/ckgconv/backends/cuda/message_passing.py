"""Message passing on a CUDA GPU: `nn.message_passing` with its own launches along edges and the same parameters.

The edges of a batch are sorted by both ends once, and all layers sum in these orders. Nodes and edges are few, so that
they stay float32 under autocast: every cast would be a launch.

Legend: N nodes, E edges, P pairs, D width.
"""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from ckgconv.backends.cuda.ckgcn import sorted_by_sender
from ckgconv.backends.cuda.message_pass import launch
from ckgconv.graphs import GraphBatch
from ckgconv.nn.gated_gcn import EPSILON, GatedGCNLayer
from ckgconv.nn.message_layers import GCNEdgesLayer, GINELayer
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.ops import dispatch
from ckgconv.ops.precision import without_autocast


@dataclass(frozen=True)
class LinkedBatch(GraphBatch):
    """A batch with its edges in the orders of both ends."""

    links: launch.Links | None = None

    @property
    def edge_index(self) -> Tensor:
        assert self.links is not None
        return torch.stack([self.links.sender, self.links.receiver])


class FusedMessagePassing(MessagePassing):
    """`MessagePassing` with edges sorted once."""

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        if not dispatch.uses_triton(batch.degree) or self.dtype != torch.float32:
            return super().node_states(batch)
        values = {field.name: getattr(batch, field.name) for field in fields(batch)}
        values["pairs"] = sorted_by_sender(batch.pairs) if self.recipe.attention_heads else batch.pairs
        with without_autocast(batch.degree):
            links = launch.links_of(batch.edge_index, batch.degree.shape[0], batch.node_filled)
            return super().node_states(LinkedBatch(**values, links=links))


class FusedGINELayer(GINELayer):
    """`GINELayer` whose messages are one launch each way."""

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        links = links_in(batch, h)
        if links is None:
            return super().forward(h, edges, batch)
        received = launch.rectified_messages(h, edges, links)
        return self.layer.nn((1 + self.layer.eps) * h + received), edges


class FusedGCNEdgesLayer(GCNEdgesLayer):
    """`GCNEdgesLayer` whose messages are one launch each way."""

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        links = links_in(batch, h)
        if links is None:
            return super().forward(h, edges, batch)
        return launch.rectified_messages(self.linear(h), edges, links) + self.shift, edges


class FusedGatedGCNLayer(GatedGCNLayer):
    """`GatedGCNLayer` whose gates and messages are one launch forward and two backward."""

    def messages(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        links = links_in(batch, h)
        if links is None:
            return super().messages(h, edges, batch)
        projected = self.edge(edges), self.sender(h), self.receiver(h), self.message(h)
        return launch.gated_messages(*projected, links, EPSILON)


def links_in(batch: GraphBatch, h: Tensor) -> launch.Links | None:
    """The sorted edges of a batch, where a launch may read them."""
    if isinstance(batch, LinkedBatch) and dispatch.uses_triton(h) and h.dtype == torch.float32:
        return batch.links
    return None
