"""The kernel ψ of one layer on a CPU, chunk by chunk of its rows, its backward written out; the equation is in `naive`.

On a CPU memory dominates: a tensor over all rows that is not in cache costs as much as a product of matrices. So each
stage is one sweep, in which a chunk is normalised, activated, multiplied and counted in the moments of the next stage
while it is in cache, and only the input of each stage is kept. With ρ = 1/√(σ² + ε), f = γ ρ, o = β - f μ:

    forward     n = f x + o                 y = W act(n) + b
    backward    ∂n = act'(n) (Wᵀ ∂y)        ∂γ = ρ (Σ ∂n x - μ ∂β)      ∂β = Σ ∂n
                ∂W = Σ ∂y act(n)ᵀ           ∂b = Σ ∂y
                ∂x = f ∂n - w/W f (∂β + ρ ∂γ (x - μ)) = f ∂n + w/W (p x + q)

∂x needs the sums over all rows, so it is computed in the sweep of the stage before. Moments of chunks are combined as
Σ s_c (μ_c - μ)² + Σ v_c, with s_c the share of a chunk in all weight and v_c its own sum of squares. Higher derivatives
are those of `naive`.

Legend: R rows, K channels of a stage's input, D of its output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.batch_norm.naive import row_share
from ckgconv.ops.derivatives import differentiated, of_specification
from ckgconv.ops.kernel_mlp import naive
from ckgconv.ops.kernel_mlp.naive import FIELDS, Stage, grouped

CHUNK_BYTES = 2**21  # of a buffer: below, calls of torch cost more than caches gain


class Norm(NamedTuple):
    """BN of a stage, with the moments of its input."""

    mean: Tensor  # [K]
    root: Tensor  # [K] ρ
    factor: Tensor  # [K] f
    offset: Tensor  # [K] o


class Rows:
    """The rows of a step: their shares in all weight, and buffers for a chunk of them."""

    def __init__(self, x: Tensor, row_weight: Tensor) -> None:
        self.total = row_weight.sum()
        self.share = row_share(row_weight, self.total)  # [R, 1]
        count, width = x.shape
        size = min(count, max(CHUNK_BYTES // (width * x.element_size()), 1))
        self.chunks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
        self.shares = torch.stack([self.share[chunk].sum() for chunk in self.chunks])  # [chunks]
        self._buffers = x.new_empty(3, size, width)

    def buffers(self, chunk: slice) -> Sequence[Tensor]:
        """Three of the size of a chunk."""
        return self._buffers[:, : chunk.stop - chunk.start].unbind(0)


class Moments:
    """Moments of rows, from those of their chunks."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._means: list[Tensor] = []
        self._squares: list[Tensor] = []

    def count(self, values: Tensor, chunk: slice, buffer: Tensor) -> None:
        """A chunk [r, K], while it is in cache."""
        share = self._rows.share[chunk]
        part = self._rows.shares[len(self._means)].clamp(min=torch.finfo(values.dtype).tiny)
        # Pairwise sums, not products of matrices: the mean may be large, and in float32 they lose two of its digits.
        mean = torch.mul(values, share, out=buffer).sum(0).div_(part)
        offset = torch.sub(values, mean, out=buffer)
        self._means.append(mean)
        self._squares.append(share.squeeze(-1) @ offset.mul_(offset))

    def all(self) -> tuple[Tensor, Tensor]:
        """μ and σ² [K] of all rows."""
        means, shares = torch.stack(self._means), self._rows.shares
        mean = shares @ means
        return mean, torch.stack(self._squares).sum(0).add_(shares @ (means - mean).square_())


def kernel_mlp(
    x: Tensor, row_weight: Tensor, stages: Sequence[Stage], epsilon: float
) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor], Tensor]:
    """ψ, means, variances and W as `naive`; the moments carry no gradient."""
    fields = (field for stage in stages for field in stage)
    psi, total, *moments = ChunkedKernelMLP.apply(x.contiguous(), row_weight, epsilon, *fields)
    return psi, moments[: len(stages)], moments[len(stages) :], total


class ChunkedKernelMLP(torch.autograd.Function):
    """x, row_weight, ε and the four fields of each stage → ψ, W, then μ and then σ² of each stage's input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, row_weight: Tensor, epsilon: float, *fields: Tensor) -> tuple[Tensor, ...]:
        stages, rows = grouped(fields), Rows(x, row_weight)
        psi, inputs, means, variances = _forward(x, stages, rows, epsilon)
        ctx.epsilon, ctx.count = epsilon, len(stages)
        ctx.save_for_backward(x, row_weight, *fields, *inputs[1:], *means, *variances)
        ctx.mark_non_differentiable(rows.total, *means, *variances)
        return psi, rows.total, *means, *variances

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, row_weight, *saved = ctx.saved_tensors
        count = ctx.count
        fields, saved = saved[: FIELDS * count], saved[FIELDS * count :]
        if differentiated(gradient):
            return _differentiable_backward(ctx, gradient, x, row_weight, fields)
        inputs, means, variances = [x, *saved[: count - 1]], saved[count - 1 : -count], saved[-count:]
        stages = grouped(fields)
        norms = [norm_of(*each, ctx.epsilon) for each in zip(stages, means, variances, strict=True)]
        gradient_x, gradients = Backward(gradient, stages, norms, inputs, Rows(x, row_weight)).run()
        return gradient_x, None, None, *(field for stage in gradients for field in stage)


def _differentiable_backward(
    ctx: Any, gradient: Tensor, x: Tensor, row_weight: Tensor, fields: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """The same gradients, of `naive`."""

    def formula(x: Tensor, *fields: Tensor) -> Tensor:
        return naive.kernel_mlp(x, row_weight, grouped(fields), ctx.epsilon)[0]

    needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[3:]]
    gradient_x, *others = of_specification(formula, (x, *fields), needed, gradient)
    return gradient_x, None, None, *others


def _forward(
    x: Tensor, stages: Sequence[Stage], rows: Rows, epsilon: float
) -> tuple[Tensor, list[Tensor], list[Tensor], list[Tensor]]:
    """ψ; input, μ and σ² of every stage."""
    moments = Moments(rows)
    for chunk in rows.chunks:
        moments.count(x[chunk], chunk, rows.buffers(chunk)[0])
    inputs = [x]
    means: list[Tensor] = []
    variances: list[Tensor] = []
    for number, stage in enumerate(stages):
        for found, value in zip((means, variances), moments.all(), strict=True):
            found.append(value)
        norm, moments = norm_of(stage, means[-1], variances[-1], epsilon), Moments(rows)
        last, result = number == len(stages) - 1, x.new_empty(x.shape[0], stage.bias.shape[0])
        for chunk in rows.chunks:
            buffer, active = rows.buffers(chunk)[:2]
            torch.addcmul(norm.offset, inputs[number][chunk], norm.factor, out=active)
            if not last:
                torch.ops.aten.gelu_(active)
            y = torch.addmm(stage.bias, active, stage.weight.T, out=result[chunk])
            if number % 2:
                y.add_(inputs[number - 1][chunk])
            if not last:
                moments.count(y, chunk, buffer)
        inputs.append(result)
    return inputs.pop(), inputs, means, variances


class Backward:
    """One sweep per stage, from the last to the first."""

    def __init__(
        self, gradient: Tensor, stages: Sequence[Stage], norms: Sequence[Norm], inputs: Sequence[Tensor], rows: Rows
    ) -> None:
        self.gradient, self.stages, self.norms, self.inputs, self.rows = gradient, stages, norms, inputs, rows
        self.carry = torch.zeros_like(inputs[0])  # [R, K] gradient of the state between residual blocks
        self.normal = torch.empty_like(inputs[0])  # [R, K] ∂n of the stage swept last
        self.slope = self.constant = norms[-1].factor  # [K] p and q of that stage

    def run(self) -> tuple[Tensor, list[Stage]]:
        """∂x, and the gradients of the fields of every stage."""
        gradients = [self._stage(number) for number in reversed(range(len(self.stages)))]
        for chunk in self.rows.chunks:
            self._gradient_of(-1, chunk, self.rows.buffers(chunk)[0])
        return self.carry, gradients[::-1]

    def _gradient_of(self, number: int, chunk: slice, buffer: Tensor) -> Tensor:
        """∂y [r, D] of a stage; of number -1 the gradient of x."""
        if number == len(self.stages) - 1:
            return self.gradient[chunk]
        norm = self.norms[number + 1]
        through = torch.addcmul(self.constant, self.inputs[number + 1][chunk], self.slope, out=buffer)
        through.mul_(self.rows.share[chunk]).addcmul_(self.normal[chunk], norm.factor)
        return self.carry[chunk].add_(through) if number % 2 else through

    def _stage(self, number: int) -> Stage:
        """Gradients of the fields of a stage; leaves ∂n of its rows, p and q."""
        stage, norm, last = self.stages[number], self.norms[number], number == len(self.stages) - 1
        sums = Stage(*(torch.zeros_like(field) for field in stage))
        for chunk in self.rows.chunks:
            first, normal, active = self.rows.buffers(chunk)
            incoming, values = self._gradient_of(number, chunk, first), self.inputs[number][chunk]
            torch.addcmul(norm.offset, values, norm.factor, out=normal)
            active = normal if last else torch.ops.aten.gelu.out(normal, out=active)
            sums.weight.addmm_(incoming.T, active)
            sums.bias.add_(incoming.sum(0))
            outgoing = torch.mm(incoming, stage.weight, out=self.normal[chunk])
            if not last:
                torch.ops.aten.gelu_backward.grad_input(outgoing, normal, grad_input=outgoing)
            sums.shift.add_(outgoing.sum(0))
            sums.scale.add_(torch.mul(outgoing, values, out=active).sum(0))
        sums.scale.addcmul_(norm.mean, sums.shift, value=-1).mul_(norm.root)
        self.slope = -norm.factor * norm.root * sums.scale
        self.constant = -norm.factor * sums.shift - self.slope * norm.mean
        return sums


def norm_of(stage: Stage, mean: Tensor, variance: Tensor, epsilon: float) -> Norm:
    root = torch.rsqrt(variance + epsilon)
    factor = stage.scale * root
    return Norm(mean, root, factor, stage.shift - factor * mean)
