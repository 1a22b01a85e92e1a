"""The node pass forward, launch after launch: two or three per block; the kernels are in `forward` and `aggregate`.

Legend: L blocks, N nodes, P pairs, D width, H hidden width, S parts (programs).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.aggregate import aggregate, project
from ckgconv.backends.cuda.node_pass.forward import forward_convolution, forward_ffn
from ckgconv.backends.cuda.node_pass.naive import Block, Lists
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import (
    NODES,
    Settings,
    convolution_launch,
    ffn_launch,
    hidden_tile,
    parts_of,
    plain_launch,
)
from ckgconv.ops.launch import block, early_launch, launch, power_of_two, programs

MANY = 64  # senders of a node, from which on they are summed by a launch of its own
FEW = 4  # nodes of a tile of that launch


def forward_pass(
    x: Tensor,
    psi: Tensor,
    filled: Tensor,
    seed: Tensor,
    settings: Settings,
    lists: Lists,
    blocks: Sequence[Block],
    moments: Tensor | None,
) -> tuple[Tensor, Tensor]:
    """x', and y, t, v of each block [L, 3, N, D]; the batch's moments are taken where there is room for them."""
    nodes, width = x.shape
    hidden = blocks[0].weight_in.shape[0]
    splits = parts_of(nodes)
    kept = torch.empty(len(blocks), 3, nodes, width, device=x.device)
    parts = torch.empty(2, 3, splits, width, device=x.device)
    sizes = {"D": width, "splits": splits, "BLOCK_N": NODES, "BLOCK_D": block(width)}
    norms = {"epsilon": settings.epsilon, "PARTS": power_of_two(splits)}
    plain, early = plain_launch(width, settings), early_launch(x)
    many = psi.shape[1] > MANY * nodes
    normal = torch.empty_like(x) if many else x
    few = {**sizes, "BLOCK_N": FEW, "TILE": NODES, "CHUNK": 16, "PITCH": psi.stride(1), **launch(width), "maxnreg": 128}
    tiles = min(-(-nodes // FEW), programs(x, 8))
    given = moments is None
    state = {"TRACK": not given, "PRECISION": settings.precision}
    source, previous = x, blocks[0]

    def norm(place: int) -> list[Any]:
        """Where the moments and running statistics of a norm are; those of block l are norms 2l and 2l + 1."""
        room = None if moments is None else moments[place // 2, place % 2]
        return [room, *settings.running[place], settings.momentum]

    for number, (each, kernel) in enumerate(zip(blocks, psi, strict=True)):
        y, t, v = kept[number]
        before = (source, parts[1], *norm(max(2 * number - 1, 0)), previous.scale_out, previous.shift_out)
        scaled = (lists.degree, each.theta1, each.theta2, each.weight, each.bias)
        if many:
            aggregate[(tiles,)](
                *before,
                kernel,
                lists.rowptr,
                lists.sender,
                lists.support_size,
                normal,
                y,
                filled,
                **norms,
                **few,
                NORM=number > 0,
                GIVEN=given,
            )
            project[(splits,)](
                normal, y, *scaled, t, parts[0], filled, seed, **settings.drops(2 * number), **sizes, **state, **plain
            )
        else:
            forward_convolution[(splits,)](
                *before,
                kernel,
                lists.rowptr,
                lists.sender,
                lists.support_size,
                *scaled,
                y,
                t,
                parts[0],
                filled,
                seed,
                **settings.drops(2 * number),
                **sizes,
                **norms,
                **state,
                **convolution_launch(psi),
                **early,
                NORM=number > 0,
                GIVEN=given,
            )
        forward_ffn[(splits,)](
            t,
            parts[0],
            *norm(2 * number),
            each.scale,
            each.shift,
            each.weight_in,
            each.bias_in,
            each.weight_out,
            each.bias_out,
            v,
            parts[1],
            filled,
            seed,
            **settings.drops(2 * number + 1),
            **sizes,
            **norms,
            **state,
            **ffn_launch(),
            **early,
            GIVEN=given,
            H=hidden,
            BLOCK_H=hidden_tile(width, hidden),
        )
        source, previous = v, each
    out = torch.empty_like(x)
    apply_norm[(-(-nodes // NODES),)](
        source,
        parts[1],
        *norm(2 * len(blocks) - 1),
        previous.scale_out,
        previous.shift_out,
        out,
        None,
        filled,
        N=nodes,
        GIVEN=given,
        WEIGHTED=False,
        TILE=NODES,
        **sizes,
        **norms,
        **plain,
    )
    return out, kept
