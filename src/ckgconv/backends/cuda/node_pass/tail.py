"""What follows the sums over the support in a block, in three launches forward; the specification is `nn.block`.

    t = x + a drop( W (y ⊙ θ₁ + √d y ⊙ θ₂) + b )         u  = BN(t)        a_i is 1, or drawn for graph and block
    v = u + a drop( W₂ GELU(W₁ u + b₁) + b₂ )             x' = BN(v)

For blocks whose sums y are not those of the node pass: attention, or a kernel that node features modulate. The Triton
kernels are those of the node pass.

Legend: N nodes, D width, H hidden width, S parts (programs).
"""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.aggregate import project
from ckgconv.backends.cuda.node_pass.backward_kernels import backward_ffn, backward_projection, norm_sums
from ckgconv.backends.cuda.node_pass.forward_kernels import forward_ffn
from ckgconv.backends.cuda.node_pass.gradients import PIECE, Factors, field_gradients
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.node_pass.options import (
    NODES,
    Block,
    Dropout,
    Settings,
    ffn_options,
    hidden_tile,
    parts_of,
    plain_options,
)
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.launch import pitch, power_of_two, tile_width


class Nodes(NamedTuple):
    """The nodes of a batch."""

    degree: Tensor  # [N] floating
    ones: Tensor  # [N] by which sums are divided: y is divided already
    filled: Tensor  # [1] nodes from there on are padding


def block_tail(x: Tensor, y: Tensor, fields: Block, nodes: Nodes, settings: Settings, dropout: Dropout) -> Tensor:
    """x' [N, D], zero in padding, from x before the block and the sums y over the support, both [N, D]."""
    return Tail.apply(x.float(), y.float(), nodes, settings, dropout, *fields)


class Tail(torch.autograd.Function):
    """x, y, nodes, settings, dropout and the fields of the block → x'."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, nodes: Nodes, settings: Settings, dropout: Dropout, *fields: Tensor
    ) -> Tensor:
        x, y = x.contiguous(), y.contiguous()
        out, kept, moments = forward_tail(x, y, nodes, settings, dropout, Block(*fields))
        ctx.save_for_backward(y, kept, moments, *nodes, dropout.seed, dropout.paths, *fields)
        ctx.settings, ctx.probability = settings, dropout.probability
        return out

    @staticmethod
    @first_derivatives_only("the node pass on a GPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        y, kept, moments, degree, ones, filled, seed, paths, *fields = ctx.saved_tensors
        nodes, dropout = Nodes(degree, ones, filled), Dropout(seed, ctx.probability, paths)
        backward = Backward(y, kept, moments, nodes, ctx.settings, dropout, Block(*fields))
        gx, gy, gradients = backward.run(gradient.contiguous())
        shaped = [value.view_as(field) for value, field in zip(gradients, fields, strict=True)]
        return gx, gy, None, None, None, *shaped


def forward_tail(
    x: Tensor, y: Tensor, nodes: Nodes, settings: Settings, dropout: Dropout, each: Block
) -> tuple[Tensor, Tensor, Tensor]:
    """x', then t and v [2, N, D], and the moments [2, 3, D] of both."""
    (count, width), hidden = x.shape, each.weight_in.shape[0]
    splits = parts_of(count)
    parts = torch.empty(2, 3, splits, width, dtype=torch.float32, device=x.device)
    moments, kept, out = torch.empty_like(parts[:, :, 0]), x.new_empty(2, count, width), torch.empty_like(x)
    t, v = kept
    sizes = {"D": width, "splits": splits, "BLOCK_N": NODES, "BLOCK_D": tile_width(width)}
    norms = {"epsilon": settings.epsilon, "PARTS": power_of_two(splits), "GIVEN": False}
    state = {"TRACK": True, "PRECISION": settings.precision, "filled": nodes.filled, "seed": dropout.seed}
    plain = plain_options(width, settings)
    project[(splits,)](
        x, y, nodes.degree, each.theta1, each.theta2, each.weight, each.bias, t, parts[0], **state,
        **dropout.arguments(0), **sizes, **plain,
    )  # fmt: skip
    forward_ffn[(splits,)](
        t, parts[0], moments[0], *settings.running[0], settings.momentum, each.scale, each.shift, each.weight_in,
        each.bias_in, each.weight_out, each.bias_out, v, parts[1], **state, **dropout.arguments(1), **sizes, **norms,
        **ffn_options(), H=hidden, BLOCK_H=hidden_tile(width, hidden), EARLY=False,
    )  # fmt: skip
    apply_norm[(-(-count // NODES),)](
        v, parts[1], moments[1], *settings.running[1], settings.momentum, each.scale_out, each.shift_out, out, None,
        nodes.filled, N=count, WEIGHTED=False, TILE=NODES, **sizes, **norms, **plain,
    )  # fmt: skip
    return out, kept, moments


class Backward:
    """One backward pass."""

    def __init__(
        self, y: Tensor, kept: Tensor, moments: Tensor, nodes: Nodes, settings: Settings, dropout: Dropout, each: Block
    ) -> None:
        self.y, self.kept, self.moments, self.nodes, self.each = y, kept, moments, nodes, each
        self.settings, self.dropout = settings, dropout
        (self.count, self.width), self.hidden = y.shape, each.weight_in.shape[0]
        self.rows = -(-self.count // PIECE) * PIECE
        self.splits = parts_of(self.rows)

    def run(self, gradient: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """∂x, ∂y and the gradients of the fields."""
        device, width = gradient.device, self.width
        sums = torch.empty(self.splits, 1, 4, width, dtype=torch.float32, device=device)
        sums_out = torch.empty(self.splits, 1, 2, width, dtype=torch.float32, device=device)
        self.factors = Factors(
            narrow=torch.empty(4, 1, self.rows, pitch(width), dtype=torch.float32, device=device),
            wide=torch.empty(2, 1, self.rows, self.hidden, dtype=torch.float32, device=device),
        )
        # Zero in padding: sums over all N rows may follow.
        residual, gradient_y = torch.zeros(2, self.count, width, dtype=torch.float32, device=device)
        common: dict[str, Any] = {"epsilon": self.settings.epsilon, "D": width, "BLOCK_D": tile_width(width)}
        common |= {
            "splits": self.splits,
            "BLOCK_N": NODES,
            "filled": self.nodes.filled,
            **plain_options(width, self.settings),
        }
        norm_sums[(self.splits,)](
            gradient, self.kept[1], self.moments[1], sums_out, part_stride=sums_out.stride(0), **common
        )
        common |= {"N": self.rows, "PITCH": self.factors.narrow.shape[3], "PRECISION": self.settings.precision}
        common |= {"seed": self.dropout.seed, "EARLY": False}
        self._feed_forward(gradient, residual, sums, sums_out, common)
        self._projection(residual, gradient_y, sums, common)
        fields = field_gradients(sums, sums_out, self.factors, width, self.settings)
        return residual, gradient_y, fields

    def _feed_forward(
        self, gradient: Tensor, residual: Tensor, sums: Tensor, sums_out: Tensor, common: dict[str, Any]
    ) -> None:
        each, (t, v), moments = self.each, self.kept, self.moments
        out_kept, u_kept = self.factors.narrow[:2, 0]
        hidden_kept, gradient_hidden = self.factors.wide[:, 0]
        backward_ffn[(self.splits,)](
            gradient, v, moments[1], each.scale_out, sums_out, sums_out.stride(0), self.splits, t, moments[0],
            each.scale, each.shift, sums, sums.stride(0), each.weight_in, each.bias_in, each.weight_out, residual,
            u_kept, hidden_kept, gradient_hidden, out_kept, **self.dropout.arguments(1), **common, H=self.hidden,
            BLOCK_H=hidden_tile(self.width, self.hidden), V_PARTS=power_of_two(self.splits),
        )  # fmt: skip

    def _projection(self, residual: Tensor, gradient_y: Tensor, sums: Tensor, common: dict[str, Any]) -> None:
        each, nodes = self.each, self.nodes
        _, _, projected_kept, scaled_kept = self.factors.narrow[:, 0]
        backward_projection[(self.splits,)](
            residual, self.kept[0], self.moments[0], each.scale, sums, sums.stride(0), self.y, nodes.ones,
            nodes.degree, each.theta1, each.theta2, each.weight, residual, projected_kept, scaled_kept, gradient_y,
            sums[0, 0, 2], **self.dropout.arguments(0), **common, PARTS=power_of_two(self.splits),
        )  # fmt: skip
