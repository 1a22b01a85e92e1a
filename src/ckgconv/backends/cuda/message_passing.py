"""Message passing on a CUDA GPU: `nn.message_passing` with its own launches along edges and the same parameters.

The edges of a batch are sorted by receiver and by sender once, and all layers sum in these orders. Nodes and edges are
few, so they stay float32 under autocast: every cast would be a launch. In training the blocks run as one pass where
`supports.message_blocks_reason` allows it, otherwise one after the other. The order of the edges depends on no weight,
so in captured steps it is computed while the previous step is still running.

Legend: N nodes, E edges, P pairs, D width.
"""

from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.block_pass import gated, gine, gps
from ckgconv.backends.cuda.block_pass.function import Operands
from ckgconv.backends.cuda.block_pass.options import EdgeLists, Settings, edge_lists
from ckgconv.backends.cuda.lists import filled_nodes, sorted_by_sender
from ckgconv.backends.cuda.message_pass import launch
from ckgconv.backends.cuda.supports import message_blocks_reason
from ckgconv.graphs import GraphBatch
from ckgconv.nn.gated_gcn import EPSILON, GatedGCNLayer
from ckgconv.nn.message_layers import GCNEdgesLayer, GINELayer
from ckgconv.nn.message_passing import MessagePassing, MessagePassingBlock
from ckgconv.ops import dispatch
from ckgconv.ops.launch import draw_seeds, product_precision
from ckgconv.ops.precision import without_autocast


@dataclass(frozen=True)
class EdgeOrderBatch(GraphBatch):
    """A batch with its edges in the orders of both ends."""

    orders: launch.EdgeOrders | None = None

    @property
    def edge_index(self) -> Tensor:
        assert self.orders is not None
        return torch.stack([self.orders.sender, self.orders.receiver])


@dataclass(frozen=True)
class SortedBatch(GraphBatch):
    """A batch whose edges lie in the order of their receivers, as the block pass reads them."""

    lists: EdgeLists | None = None


torch.export.register_dataclass(SortedBatch, serialized_type_name="ckgconv.SortedBatch")


def with_sorted_edges(batch: GraphBatch) -> SortedBatch:
    """The same graphs, with their edges in another order."""
    values = {field.name: getattr(batch, field.name) for field in fields(GraphBatch)}
    lists, order = edge_lists(batch.edge_index, batch.degree.shape[0])
    values["edge_row"] = batch.edge_row[order]
    values["edge_features"] = None if batch.edge_features is None else batch.edge_features[order]
    return SortedBatch(**values, lists=lists)


class FusedMessagePassing(MessagePassing):
    """`MessagePassing` with edges sorted once."""

    def assembled(self, batch: GraphBatch) -> GraphBatch:
        """With edges in the order that the blocks read, where they run as one pass."""
        return with_sorted_edges(batch) if message_blocks_reason(self, batch) is None else batch

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        if not dispatch.uses_triton(batch.degree) or self.dtype != torch.float32:
            return super().node_states(batch)
        if message_blocks_reason(self, batch) is None:
            with without_autocast(batch.degree):
                return fused_blocks(self, self._stem(batch), batch)
        values = {field.name: getattr(batch, field.name) for field in fields(GraphBatch)}
        values["pairs"] = sorted_by_sender(batch.pairs) if self.recipe.attention_heads else batch.pairs
        with without_autocast(batch.degree):
            orders = launch.edge_orders(batch.edge_index, filled_nodes(batch), batch.degree.shape[0])
            return super().node_states(EdgeOrderBatch(**values, orders=orders))


def fused_blocks(model: MessagePassing, h: Tensor, batch: GraphBatch) -> Tensor:
    """hᴸ [N, D] of h⁰ [N, D] by the block pass."""
    batch = batch if isinstance(batch, SortedBatch) else with_sorted_edges(batch)
    lists, count = batch.lists, batch.edge_row.shape[0]
    assert lists is not None
    edges = h.new_zeros(count, h.shape[1])
    if model.edge_encoder is not None:
        edges = model.edge_encoder(batch.edge_features, count)
    running = [[norm.running for norm in norms_of(block)] for block in model.blocks]
    first: Any = model.blocks[0].ffn_norm
    settings = Settings(running, first.momentum, first.epsilon, model.recipe.dropout, product_precision())
    filled = filled_nodes(batch)
    seed = draw_seeds(h.device, 1)[0] if model.recipe.dropout or model.recipe.attention_dropout else filled
    operands = Operands(filled, seed, lists)
    if model.recipe.layer == "gatedgcn":
        return gated.gated_blocks(h, edges, operands, [gated_fields(each) for each in model.blocks], settings)
    if model.blocks[0].attention is None:
        return gine.gine_blocks(h, edges, operands, [gine_fields(each) for each in model.blocks], settings)
    attention = gps.Attention(
        batch.node_ptr, batch.pairs.rowptr, model.recipe.attention_heads, model.recipe.attention_dropout
    )
    return gps.gps_blocks(h, edges, operands, [gps_fields(each) for each in model.blocks], settings, attention)


def norms_of(block: MessagePassingBlock) -> list[Any]:
    """In the order in which the pass counts them."""
    norms = [block.sum_norm, block.ffn_norm, block.attention_norm, block.layer_norm]
    norms.append(block.layer.edge_norm if isinstance(block.layer, GatedGCNLayer) else None)
    return [norm for norm in norms if norm is not None]


def gated_fields(block: Any) -> gated.Block:
    """Parameters of a block."""
    layer, (wide, narrow) = block.layer, block.ffn
    linears = (layer.own, layer.message, layer.edge, layer.sender, layer.receiver)
    norms = (layer.edge_norm, block.layer_norm, block.sum_norm)
    fields = [field for linear in linears for field in (linear.weight, linear.bias)]
    fields += [field for norm in norms for field in (norm.scale, norm.shift)]
    fields += [wide.weight, wide.bias, narrow.weight, narrow.bias, block.ffn_norm.scale, block.ffn_norm.shift]
    return gated.Block(*fields)


def gps_fields(block: Any) -> gps.Block:
    """Parameters of a block."""
    project, output, norm = block.attention.project, block.attention.output, block.attention_norm
    return gps.Block(
        *gine_fields(block), project.weight, project.bias, output.weight, output.bias, norm.scale, norm.shift
    )


def gine_fields(block: Any) -> gine.Block:
    """Parameters of a block."""
    layer, (wide, narrow) = block.layer.layer, block.ffn
    first, _, second = layer.nn
    return gine.Block(
        layer.eps, first.weight, first.bias, second.weight, second.bias, block.sum_norm.scale, block.sum_norm.shift,
        wide.weight, wide.bias, narrow.weight, narrow.bias, block.ffn_norm.scale, block.ffn_norm.shift,
    )  # fmt: skip


class FusedGINELayer(GINELayer):
    """`GINELayer` whose messages are one launch each way."""

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        orders = orders_in(batch, h)
        if orders is None:
            return super().forward(h, edges, batch)
        received = launch.rectified_messages(h, edges, orders)
        return self.layer.nn((1 + self.layer.eps) * h + received), edges


class FusedGCNEdgesLayer(GCNEdgesLayer):
    """`GCNEdgesLayer` whose messages are one launch each way."""

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        orders = orders_in(batch, h)
        if orders is None:
            return super().forward(h, edges, batch)
        return launch.rectified_messages(self.linear(h), edges, orders) + self.shift, edges


class FusedGatedGCNLayer(GatedGCNLayer):
    """`GatedGCNLayer` whose gates and messages are one launch forward and two backward."""

    def messages(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        orders = orders_in(batch, h)
        if orders is None:
            return super().messages(h, edges, batch)
        projected = self.edge(edges), self.sender(h), self.receiver(h), self.message(h)
        return launch.gated_messages(*projected, orders, EPSILON)


def orders_in(batch: GraphBatch, h: Tensor) -> launch.EdgeOrders | None:
    """The sorted edges of a batch, where a launch may read them."""
    if isinstance(batch, EdgeOrderBatch) and dispatch.uses_triton(h) and h.dtype == torch.float32:
        return batch.orders
    return None
