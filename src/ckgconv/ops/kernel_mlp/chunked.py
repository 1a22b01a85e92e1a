"""The kernel ψ of one layer on a CPU, chunk by chunk of its rows, its backward written out; the equation is in `naive`.

On a CPU memory dominates: a tensor over all rows that is not in cache costs as much as a product of matrices. So each
stage is swept chunk by chunk, and as few values as possible are written. With ρ = 1/√(σ² + ε), f = γ ρ, o = β - f μ:

    forward     n = f x + o                 y = W act(n) + b
    backward    ∂n = act'(n) (Wᵀ ∂y)        ∂γ = ρ (Σ ∂n x - μ ∂β)      ∂β = Σ ∂n
                ∂W = Σ ∂y act(n)ᵀ           ∂b = Σ ∂y
                ∂x = f ∂n - w/W f (∂β + ρ ∂γ (x - μ)) = f ∂n + w/W (p x + q)

- Every result but ψ is read by norms alone, so a constant in it has no effect: y is stored without b and less its
  mean, W Σ w/W act(n), which is known before the product. Its variance is then a sum of squares, and ∂b is 0; ψ alone
  has a bias with a gradient. μ is 0 for all stages but the first.
- act(n) is kept for ∂W. Wᵀ ∂y is computed with f Wᵀ in place of Wᵀ, which saves a sweep in ∂x; sums of ∂n are divided
  by f.
- ∂x needs the sums over all rows, so it is computed in the sweep of the stage before.
- The last stage has no act: ψ = (W f) x + (b + W o), and the sums that ∂W needs are also those of ∂γ and ∂β.

Higher derivatives are those of `naive`.

Legend: R rows, K channels of a stage's input, D of its output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.ops.batch_norm.naive import row_share
from ckgconv.ops.derivatives import specification_gradients, will_be_differentiated
from ckgconv.ops.kernel_mlp import naive
from ckgconv.ops.kernel_mlp.naive import FIELDS, Stage, grouped

CHUNK_BYTES = 2**21  # of a buffer: below, calls of torch cost more than caches gain
CHUNK_ROWS = 2**13  # beyond, sums by products lose digits in float32


class Norm(NamedTuple):
    """BN of a stage, with the moments of its input as stored."""

    mean: Tensor  # [K] μ
    root: Tensor  # [K] ρ
    factor: Tensor  # [K] f
    offset: Tensor  # [K] o


class Rows:
    """The rows of a step: their shares in all weight, and buffers for a chunk of them."""

    def __init__(self, x: Tensor, row_weight: Tensor) -> None:
        self.total = row_weight.sum()
        self.share = row_share(row_weight, self.total)  # [R, 1]
        self.flat_share = self.share.squeeze(-1)  # [R]
        count, width = x.shape
        size = min(count, CHUNK_ROWS, max(CHUNK_BYTES // (width * x.element_size()), 1))
        self.chunks = [slice(start, min(start + size, count)) for start in range(0, count, size)]
        self._buffers = x.new_empty(2, size, width)

    def buffers(self, chunk: slice) -> Sequence[Tensor]:
        """Two of the size of a chunk."""
        return self._buffers[:, : chunk.stop - chunk.start].unbind(0)

    def variance_of(self, values: Tensor, chunk: slice) -> Tensor:
        """[K] part of a chunk [r, K] in the variance of values whose mean is 0."""
        buffer = self.buffers(chunk)[0]
        return self.flat_share[chunk] @ torch.mul(values, values, out=buffer)

    def moments(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """μ and σ² [K] of x [R, K], whose mean may be large."""
        # Pairwise sums, not products of matrices, which in float32 lose two digits of such a mean.
        parts = [torch.mul(x[chunk], self.share[chunk], out=self.buffers(chunk)[1]).sum(0) for chunk in self.chunks]
        mean = added(parts)
        centred = ((torch.sub(x[chunk], mean, out=self.buffers(chunk)[1]), chunk) for chunk in self.chunks)
        return mean, added([self.variance_of(*each) for each in centred])


class Kept(NamedTuple):
    """What the forward pass leaves for the backward pass."""

    inputs: list[Tensor]  # [R, K] of each stage, the first is x
    active: list[Tensor]  # [R, K] act(n) of each stage but the last
    variances: list[Tensor]  # [K] of each stage's input


def kernel_mlp(
    x: Tensor, row_weight: Tensor, stages: Sequence[Stage], epsilon: float
) -> tuple[Tensor, Sequence[Tensor], Sequence[Tensor], Tensor]:
    """ψ, means, variances and W as `naive`; the moments carry no gradient."""
    if not row_weight.any():  # no statistics, so biases have an effect
        return naive.kernel_mlp(x, row_weight, stages, epsilon)
    fields = (field for stage in stages for field in stage)
    psi, total, *moments = ChunkedKernelMLP.apply(x.contiguous(), row_weight, epsilon, *fields)
    return psi, moments[: len(stages)], moments[len(stages) :], total


class ChunkedKernelMLP(torch.autograd.Function):
    """x, row_weight, ε and the four fields of each stage → ψ, W, then μ and then σ² of each stage's input."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, row_weight: Tensor, epsilon: float, *fields: Tensor) -> tuple[Tensor, ...]:
        stages, rows = grouped(fields), Rows(x, row_weight)
        psi, means, kept = _forward(x, stages, rows, epsilon)
        ctx.epsilon, ctx.count = epsilon, len(stages)
        ctx.save_for_backward(x, row_weight, *fields, *kept.inputs[1:], *kept.active, *kept.variances, means[0])
        ctx.mark_non_differentiable(rows.total, *means, *kept.variances)
        return psi, rows.total, *means, *kept.variances

    @staticmethod
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, row_weight, *saved = ctx.saved_tensors
        count = ctx.count
        fields, saved = saved[: FIELDS * count], saved[FIELDS * count :]
        if will_be_differentiated(gradient):
            return _differentiable_backward(ctx, gradient, x, row_weight, fields)
        *saved, mean = saved
        kept = Kept([x, *saved[: count - 1]], saved[count - 1 : -count], saved[-count:])
        stages, means = grouped(fields), [mean, *[torch.zeros_like(mean)] * (count - 1)]
        norms = [norm_of(*each, ctx.epsilon) for each in zip(stages, means, kept.variances, strict=True)]
        gradient_x, gradients = Backward(gradient, stages, norms, kept, Rows(x, row_weight)).run()
        return gradient_x, None, None, *(field for stage in gradients for field in stage)


def _differentiable_backward(
    ctx: Any, gradient: Tensor, x: Tensor, row_weight: Tensor, fields: Sequence[Tensor]
) -> tuple[Tensor | None, ...]:
    """The same gradients, of `naive`."""

    def formula(x: Tensor, *fields: Tensor) -> Tensor:
        return naive.kernel_mlp(x, row_weight, grouped(fields), ctx.epsilon)[0]

    needed = [ctx.needs_input_grad[0], *ctx.needs_input_grad[3:]]
    gradient_x, *others = specification_gradients(formula, (x, *fields), needed, gradient)
    return gradient_x, None, None, *others


def _forward(x: Tensor, stages: Sequence[Stage], rows: Rows, epsilon: float) -> tuple[Tensor, list[Tensor], Kept]:
    """ψ, μ of every stage's input, and what is kept."""
    mean, variance = rows.moments(x)
    inputs, active, means, variances = [x], [], [mean], [variance]
    stored, state_mean = mean, mean  # of the last input as it is stored, and of the state between blocks
    for number, stage in enumerate(stages[:-1]):
        norm = norm_of(stage, stored, variances[-1], epsilon)
        values, sums = torch.empty_like(x), []
        for chunk in rows.chunks:
            part = torch.addcmul(norm.offset, inputs[number][chunk], norm.factor, out=values[chunk])
            sums.append(rows.flat_share[chunk] @ torch.ops.aten.gelu_(part))
        product_mean = stage.weight @ added(sums)
        if number % 2:
            # The state is stored less its mean, but for x.
            result = _block_end(inputs[number - 1], product_mean + (mean if number == 1 else 0), values, stage, rows)
            means.append(state_mean := state_mean + product_mean + stage.bias)
        else:
            result = _product(-product_mean, values, stage, rows)
            means.append(product_mean + stage.bias)
        inputs.append(result[0])
        variances.append(result[1])
        active.append(values)
        stored = torch.zeros_like(mean)
    last = stages[-1]
    norm = norm_of(last, stored, variances[-1], epsilon)
    psi = torch.addmm(torch.addmv(last.bias, last.weight, norm.offset), inputs[-1], (last.weight * norm.factor).T)
    return psi, means, Kept(inputs, active, variances)


def _product(offset: Tensor, active: Tensor, stage: Stage, rows: Rows) -> tuple[Tensor, Tensor]:
    """W a + offset [R, K], and its variance."""
    result, parts = torch.empty_like(active), []
    for chunk in rows.chunks:
        y = torch.addmm(offset, active[chunk], stage.weight.T, out=result[chunk])
        parts.append(rows.variance_of(y, chunk))
    return result, added(parts)


def _block_end(state: Tensor, mean: Tensor, active: Tensor, stage: Stage, rows: Rows) -> tuple[Tensor, Tensor]:
    """state + W a - mean [R, K], and its variance."""
    result, parts = torch.empty_like(active), []
    for chunk in rows.chunks:
        y = torch.sub(state[chunk], mean, out=result[chunk]).addmm_(active[chunk], stage.weight.T)
        parts.append(rows.variance_of(y, chunk))
    return result, added(parts)


class Backward:
    """One sweep per stage, from the last to the first."""

    def __init__(
        self, gradient: Tensor, stages: Sequence[Stage], norms: Sequence[Norm], kept: Kept, rows: Rows
    ) -> None:
        self.gradient, self.stages, self.norms, self.kept, self.rows = gradient, stages, norms, kept, rows
        self.carry = torch.empty_like(kept.inputs[0])  # [R, K] gradient of the state between residual blocks
        self.normal = torch.empty_like(kept.inputs[0])  # [R, K] f ∂n of the stage swept last, then ∂x
        self.slope = self.constant = norms[-1].factor  # [K] p and q of that stage
        self.all_count = bool(torch.stack([norm.factor for norm in norms]).all())  # no f is 0

    def run(self) -> tuple[Tensor, list[Stage]]:
        """∂x, and the gradients of the fields of every stage."""
        gradients = [self._last(), *(self._stage(number) for number in reversed(range(len(self.stages) - 1)))]
        if len(self.stages) > 1:
            for chunk in self.rows.chunks:
                self._gradient_of(-1, chunk)
        return self.carry, gradients[::-1]

    def _gradient_of(self, number: int, chunk: slice) -> Tensor:
        """∂y [r, D] of a stage but the last; of number -1 the gradient of x."""
        if number == len(self.stages) - 2:
            return self.carry[chunk]
        values, buffer, normal = self.kept.inputs[number + 1][chunk], self.rows.buffers(chunk)[0], self.normal[chunk]
        through = torch.addcmul(self.constant, values, self.slope, out=buffer)
        if not self.all_count:
            normal.mul_(self.norms[number + 1].factor != 0)
        into = self.carry[chunk].add_(normal) if number % 2 else normal
        return into.addcmul_(through, self.rows.share[chunk])

    def _last(self) -> Stage:
        """Gradients of the fields of the last stage; leaves the gradient of its input."""
        stage, norm, values = self.stages[-1], self.norms[-1], self.kept.inputs[-1]
        product = added([self.gradient[chunk].T @ values[chunk] for chunk in self.rows.chunks])
        bias = added([self.gradient[chunk].sum(0) for chunk in self.rows.chunks])
        shift = stage.weight.T @ bias
        scale = (stage.weight * product).sum(0).addcmul_(norm.mean, shift, value=-1).mul_(norm.root)
        self._through_moments(norm, scale, shift)
        weight = stage.weight * norm.factor
        for chunk in self.rows.chunks:
            pulled = torch.addcmul(self.constant, values[chunk], self.slope, out=self.carry[chunk])
            pulled.mul_(self.rows.share[chunk]).addmm_(self.gradient[chunk], weight)
        return Stage(scale, shift, torch.addr(product * norm.factor, bias, norm.offset), bias)

    def _stage(self, number: int) -> Stage:
        """Gradients of the fields of another stage; leaves f ∂n of its rows, p and q."""
        stage, norm = self.stages[number], self.norms[number]
        factor = norm.factor if self.all_count else norm.factor.where(norm.factor != 0, 1)
        inner = stage.weight * factor
        weights, shifts, scales = [], [], []
        for chunk in self.rows.chunks:
            incoming, values = self._gradient_of(number, chunk), self.kept.inputs[number][chunk]
            (first, second), outgoing = self.rows.buffers(chunk), self.normal[chunk]
            weights.append(incoming.T @ self.kept.active[number][chunk])
            torch.mm(incoming, inner, out=first)
            torch.addcmul(norm.offset, values, norm.factor, out=second)
            torch.ops.aten.gelu_backward.grad_input(first, second, grad_input=outgoing)
            shifts.append(outgoing.sum(0))
            scales.append(torch.mul(outgoing, values, out=second).sum(0))
        shift = added(shifts).div_(factor)
        scale = added(scales).div_(factor).addcmul_(norm.mean, shift, value=-1).mul_(norm.root)
        self._through_moments(norm, scale, shift)
        return Stage(scale, shift, added(weights), torch.zeros_like(stage.bias))

    def _through_moments(self, norm: Norm, scale: Tensor, shift: Tensor) -> None:
        """p and q from ∂γ and ∂β."""
        self.slope = (norm.factor * norm.root).mul_(scale).neg_()
        self.constant = torch.addcmul(self.slope * norm.mean, norm.factor, shift).neg_()


def norm_of(stage: Stage, mean: Tensor, variance: Tensor, epsilon: float) -> Norm:
    root = torch.rsqrt(variance + epsilon)
    factor = stage.scale * root
    return Norm(mean, root, factor, torch.addcmul(stage.shift, factor, mean, value=-1))


def added(parts: list[Tensor]) -> Tensor:
    """The sum of the parts of all chunks."""
    return parts[0] if len(parts) == 1 else torch.stack(parts).sum(0)
