"""GRIT on a CUDA GPU: `nn.grit` with its own launches and the same parameters.

Pairs are many: the attention pass reads each once per layer and direction. In training all blocks are one block pass;
in evaluation, and with dropout on node values, the nodes are computed by the plain module.

Legend: N nodes, P pairs, D width, L blocks.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ckgconv.backends.cuda.attention_pass import launch
from ckgconv.backends.cuda.block_pass import grit
from ckgconv.backends.cuda.block_pass.options import Settings
from ckgconv.backends.cuda.lists import filled_nodes, sorted_by_sender
from ckgconv.backends.cuda.supports import attention_reason, grit_blocks_reason
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
        settings = [settings_of(block, storage(e)) for block in self.blocks]
        lists = lists_of(batch.pairs)
        seeds = draw_seeds(h.device, 2 * len(self.blocks)).view(-1, 2) if self.training else None
        # Nodes are a hundredth of the data: rounding them gains nothing, and every cast is a launch.
        with without_autocast(h):
            if seeds is None or grit_blocks_reason(self.blocks, h, batch) is not None:
                return layers(self.blocks, h, e, batch, lists, settings, seeds)
            fields = [fields_of(block) for block in self.blocks]
            of_pass = grit.PassSettings(settings_of_nodes(self.blocks), settings)
            return grit.grit_blocks(h, e, batch_of(batch, lists, seeds), fields, of_pass)


def layers(
    blocks: Sequence[GRITBlock],
    h: Tensor,
    e: Tensor,
    batch: GraphBatch,
    lists: launch.Lists,
    settings: Sequence[launch.AttentionSettings],
    seeds: Tensor | None,
) -> Tensor:
    """hᴸ [N, D] block by block: only the attention is fused. `seeds` [L, 2] in training, None in evaluation."""
    state = launch.first_state(e, settings[0].gradients)
    for number, block in enumerate(blocks):
        seed = None if seeds is None else seeds[number]
        y, state = attended(block, h, state, lists, settings[number], seed)
        h = block.node_states(h, y, batch)
    return h


def settings_of(block: GRITBlock, gradients: torch.dtype) -> launch.AttentionSettings:
    """Of the attention of a block; gradients of pairs are stored in that dtype."""
    attention, norm = block.attention, block.pair_norm
    return launch.AttentionSettings(
        norm.running, norm.momentum, norm.epsilon, attention.clamp, attention.dropout, block.dropout, gradients,
        product_precision(),
    )  # fmt: skip


def attended(
    block: GRITBlock,
    h: Tensor,
    state: launch.PairState,
    lists: launch.Lists,
    settings: launch.AttentionSettings,
    seed: Tensor | None,
) -> tuple[Tensor, launch.PairState]:
    """y [N, D] and the state of the pairs after a block; `seed` [2] of its masks in training, None in evaluation."""
    attention = block.attention
    projected = attention.query(h), attention.key(h), attention.value(h)
    if seed is None:
        found = launch.evaluated_layer(state, projected, weights_of(block), lists, settings)
    else:
        found = launch.attention_layer(state, projected, weights_of(block), lists, settings, seed)
    return attention.received(found.values, found.states), found.state


def batch_of(batch: GraphBatch, lists: launch.Lists, seeds: Tensor) -> grit.Batch:
    """What the pass over all blocks reads."""
    return grit.Batch(lists, torch.log1p(batch.degree.float()), filled_nodes(batch), seeds)


def settings_of_nodes(blocks: Sequence[GRITBlock]) -> Settings:
    """Of what surrounds the attention in all blocks."""
    norm = blocks[0].attention_norm
    running = [[block.attention_norm.running, block.ffn_norm.running] for block in blocks]
    return Settings(running, norm.momentum, norm.epsilon, 0.0, product_precision())


def fields_of(block: GRITBlock) -> tuple[grit.Block, launch.Weights]:
    """Parameters of a block as the passes take them."""
    attention, first, second, scaler = block.attention, block.attention_norm, block.ffn_norm, block.degree_scaler
    nodes = grit.Block(
        attention.query.weight, attention.query.bias, attention.key.weight, attention.value.weight, attention.mix,
        scaler.theta1, scaler.theta2, block.projection.weight, block.projection.bias, first.scale, first.shift,
        block.ffn_in.weight, block.ffn_in.bias, block.ffn_out.weight, block.ffn_out.bias, second.scale, second.shift,
    )  # fmt: skip
    return nodes, weights_of(block)


def weights_of(block: GRITBlock) -> launch.Weights:
    """Parameters of a block that pairs meet."""
    attention, norm = block.attention, block.pair_norm
    return launch.Weights(
        attention.pair.weight, attention.pair.bias, attention.score, block.pair_projection.weight,
        block.pair_projection.bias, norm.scale, norm.shift,
    )  # fmt: skip


def lists_of(pairs: Pairs) -> launch.Lists:
    """The support by receivers and by senders; sorted here unless the batch includes the order by senders."""
    pairs = sorted_by_sender(pairs)
    by_sender = sender_lists(pairs)
    assert by_sender is not None
    pointer, rows, receiver = by_sender
    filled = pairs.rowptr[-1:] if pairs.filled is None else pairs.filled
    return launch.Lists(pairs.rowptr, pairs.sender, pointer, rows, receiver, filled)
