"""GRIT by the attention pass: `nn.grit` with its own launches for pairs and the same parameters.

Pairs are many, and each is read once per layer and direction. Nodes are few; in training what follows the attention
runs by launches of the node pass and the block pass.

Legend: N nodes, P pairs, D width, L blocks.
"""

import torch
from torch import Tensor

from ckgconv.backends.cuda.attention_pass import launch
from ckgconv.backends.cuda.block_pass.options import Settings
from ckgconv.backends.cuda.block_pass.tail import relu_tail
from ckgconv.backends.cuda.ckgcn import sorted_by_sender
from ckgconv.backends.cuda.node_pass.options import Block
from ckgconv.backends.cuda.node_pass.tail import Nodes
from ckgconv.backends.cuda.pairs_pass.backward import pitched
from ckgconv.backends.cuda.supports import attention_reason, grit_tail_reason
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.convolution import sender_lists
from ckgconv.nn.grit import GRIT, GRITBlock
from ckgconv.ops.launch import draw_seeds, product_precision, storage
from ckgconv.ops.precision import without_autocast


class FusedGRIT(GRIT):
    """`GRIT` on a CUDA GPU."""

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        if attention_reason(self, batch.pairs, batch.degree) is not None:
            return super().node_states(batch)
        h, e = self.stem(batch)
        gradients = storage(e)
        stored = torch.float16 if gradients == torch.bfloat16 else torch.float32
        state = launch.PairState(pitched(e).to(stored))
        lists = lists_of(batch.pairs)
        seeds = draw_seeds(h.device, 2 * len(self.blocks)).view(-1, 2) if self.training else None
        nodes = None if grit_tail_reason(self.blocks, h, batch) is not None else nodes_of(batch)
        # Nodes are a hundredth of the data: rounding them gains nothing, and every cast is a launch.
        with without_autocast(h):
            for number, block in enumerate(self.blocks):
                settings = settings_of(block, gradients)
                y, state = attended(block, h, state, lists, settings, None if seeds is None else seeds[number])
                h = block.node_states(h, y, batch) if nodes is None else fused_nodes(block, h, y, nodes)
        return h


def settings_of(block: GRITBlock, gradients: torch.dtype) -> launch.Settings:
    """Of the attention of a block; gradients of pairs are stored in that dtype."""
    attention, norm = block.attention, block.pair_norm
    return launch.Settings(
        norm.running, norm.momentum, norm.epsilon, attention.clamp, attention.dropout, block.dropout, gradients,
        product_precision(),
    )  # fmt: skip


def attended(
    block: GRITBlock,
    h: Tensor,
    state: launch.PairState,
    lists: launch.Lists,
    settings: launch.Settings,
    seed: Tensor | None,
) -> tuple[Tensor, launch.PairState]:
    """y [N, D] and the state of the pairs after a block; `seed` [2] of its masks in training, None in evaluation."""
    attention, norm = block.attention, block.pair_norm
    projected = attention.query(h), attention.key(h), attention.value(h)
    weights = launch.Weights(
        attention.pair.weight, attention.pair.bias, attention.score, block.pair_projection.weight,
        block.pair_projection.bias, norm.scale, norm.shift,
    )  # fmt: skip
    if seed is None:
        found = launch.evaluated_layer(state, projected, weights, lists, settings)
    else:
        found = launch.attention_layer(state, projected, weights, lists, settings, seed)
    return attention.received(found.values, found.states), found.state


def nodes_of(batch: GraphBatch) -> Nodes:
    """The nodes of a batch; the node pass takes the root of what is given as degree."""
    degree, filled = batch.degree.float(), batch.node_filled
    filled = torch.full((1,), degree.shape[0], device=degree.device) if filled is None else filled
    return Nodes(torch.log1p(degree).square(), torch.ones_like(degree), filled)


def fused_nodes(block: GRITBlock, h: Tensor, y: Tensor, nodes: Nodes) -> Tensor:
    """h [N, D] after a block, from h before it and what the attention returned, y [N, D]."""
    first, second, scaler = block.attention_norm, block.ffn_norm, block.degree_scaler
    running = [[first.running, second.running]]
    settings = Settings(running, first.momentum, first.epsilon, 0.0, product_precision())
    fields = Block(
        scaler.theta1, scaler.theta2, block.projection.weight, block.projection.bias, first.scale, first.shift,
        block.ffn_in.weight, block.ffn_in.bias, block.ffn_out.weight, block.ffn_out.bias, second.scale, second.shift,
    )  # fmt: skip
    return relu_tail(h, y, fields, nodes, settings)


def lists_of(pairs: Pairs) -> launch.Lists:
    """The support by receivers and by senders; sorted here unless the batch includes the order by senders."""
    pairs = sorted_by_sender(pairs)
    by_sender = sender_lists(pairs)
    assert by_sender is not None
    pointer, rows, receiver = by_sender
    filled = pairs.rowptr[-1:] if pairs.filled is None else pairs.filled
    return launch.Lists(pairs.rowptr, pairs.sender, pointer, rows, receiver, filled)
