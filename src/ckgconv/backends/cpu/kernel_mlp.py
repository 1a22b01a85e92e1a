"""The kernel ψ of one layer on a CPU (Eqs. 5 and 6); the specification is `nn.kernel`.

On a CPU the sweeps over memory between the matrix products dominate. So each stage is one affine map (the norm), one
GELU in place and one product, and the backward pass is written out: it keeps the input of every stage, recomputes
normalised and activated values, and reuses the same few buffers. With f = γ/√(σ² + ε), o = β - f μ:

    last stage    ψ = (W f) h + (b + W o)        ∂W = Gᵀh f + (Σ G) oᵀ
                  Σ ∂n = Wᵀ Σ G                  Σ ∂n h = Σ_c W_c ⊙ (Gᵀh)_c      from sums that ∂W needs in any case

A bias right before a norm has no effect on the result and hence no gradient; it only shifts the running mean.

Legend: R rows, K channels of a stage's input, D of its output.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cpu.memory import Memory
from ckgconv.backends.stages import StageStatistics
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.dropout.packed import LEVELS, draw_bits, inverse_share, keep_factor, levels_kept
from ckgconv.ops.kernel_mlp import Stage, grouped

EVALUATED_ROWS = 2**15  # per chunk, so that intermediate values stay in cache


class Moments(NamedTuple):
    """Of the rows of a stage's input."""

    mean: Tensor  # [K]
    root: Tensor  # [K] 1/√(σ² + ε)


class Shared:
    """What all layers of a step share: the moments of x, and memory for values [R, K]."""

    moments: Moments

    def __init__(self, x: Tensor, memory: Memory, stored: int) -> None:
        # The three buffers are reused and stay in cache; the other tensors are kept for the backward pass.
        first, second, third, *self._free = memory.borrow(self, 3 + stored, x)
        self.buffers = (first, second, third)

    def take(self) -> Tensor:
        """A tensor that nothing else uses until the step is over."""
        return self._free.pop()


class Tracking(NamedTuple):
    """Running statistics [K] of the stages of one layer, and the constants of their update."""

    running: StageStatistics
    momentum: float
    epsilon: float


class Dropout(NamedTuple):
    """Probabilities at the end of a block and on ψ."""

    mlp: float
    kernel: float


class Settings(NamedTuple):
    """What has no gradient."""

    shared: Shared
    tracking: Tracking
    mlp_kept: int
    kernel_kept: int


def kernel_mlp(x: Tensor, stages: Sequence[Stage], shared: Shared, tracking: Tracking, dropout: Dropout) -> Tensor:
    """ψ [R, D] of x [R, K] in training, R > 1; differentiable once.

    Args:
        stages: of one layer, fields without the dimension of layers.
        shared: by `share` from x; gradients flow through its moments too.
        tracking: running statistics move towards those of the batch; those of x were moved by `share`.
    """
    settings = Settings(shared, tracking, levels_kept(dropout.mlp), levels_kept(dropout.kernel))
    return KernelMLP.apply(x, settings, *(field for stage in stages for field in stage))


def evaluated_kernel_mlp(x: Tensor, stages: Sequence[Stage], shared: Shared) -> Tensor:
    """ψ [R, D] of x [R, K] by `folded` stages of one layer; without gradient. `shared` is by `share_buffers` from x."""
    *blocks, last = stages
    psi = torch.empty(x.shape[0], last.bias.shape[0], dtype=x.dtype)
    for rows, result in zip(x.split(EVALUATED_ROWS), psi.split(EVALUATED_ROWS), strict=True):
        first, second, third = (buffer[: rows.shape[0]] for buffer in shared.buffers)
        state = rows
        for inner, outer in zip(blocks[::2], blocks[1::2], strict=True):
            torch.addcmul(inner.shift, state, inner.scale, out=first)
            torch.addmm(inner.bias, gelu_(first), inner.weight.T, out=second)
            state = torch.addmm(state, gelu_(second), outer.weight.T, out=third)
        torch.addmm(last.bias, state, last.weight.T, out=result)
    return psi


def folded(stages: Sequence[Stage], running: StageStatistics, epsilon: float) -> list[Stage]:
    """The same function, with the running statistics, in fewer sweeps: norms are folded into adjacent linear maps.

    Fields may have leading dimensions, as those of all layers together do. What remains is x + W₂ GELU(W₁ GELU(γ x +
    β) + b₁) in each block and W x + b at the end: biases inside the residual sum are folded into the next norm.
    """
    moments = [Moments(mean, _root(variance, epsilon)) for mean, variance in running]
    norms = [affine(stage, each) for stage, each in zip(stages, moments, strict=True)]
    result, waiting = [], torch.zeros_like(stages[-1].shift)
    for number in range(0, len(stages) - 1, 2):
        (factor, offset), (next_factor, next_offset) = norms[number : number + 2]
        inner, outer = stages[number : number + 2]
        bias = torch.addcmul(next_offset, next_factor, inner.bias)
        shift = torch.addcmul(offset, factor, waiting)
        result += [Stage(factor, shift, inner.weight * next_factor.unsqueeze(-1), bias), outer]
        waiting = waiting + outer.bias
    (factor, offset), last = norms[-1], stages[-1]
    bias = last.bias + (last.weight @ torch.addcmul(offset, factor, waiting).unsqueeze(-1)).squeeze(-1)
    return [*result, Stage(factor, offset, last.weight * factor.unsqueeze(-2), bias)]


class KernelMLP(torch.autograd.Function):
    """x, settings and the four fields of each stage → ψ."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, settings: Settings, *fields: Tensor) -> Tensor:
        stages = grouped(fields)
        psi, inputs, moments, bits = _forward(x, stages, settings)
        ctx.settings, ctx.moments, ctx.bits = settings, moments, bits
        # Not by save_for_backward, whose version check counts every write into the borrowed buffer as one into these.
        ctx.inputs = inputs[1:]
        ctx.save_for_backward(x, *fields)
        return psi

    @staticmethod
    @first_derivatives_only("the kernel pass of a CPU")
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        x, *fields = ctx.saved_tensors
        stages, inputs = grouped(fields), [x, *ctx.inputs]
        gradient_x, gradients = _backward(gradient, stages, inputs, ctx.moments, ctx.bits, ctx.settings)
        return gradient_x, None, *(field for stage in gradients for field in stage)


def _forward(
    x: Tensor, stages: Sequence[Stage], settings: Settings
) -> tuple[Tensor, list[Tensor], list[Moments], list[Tensor | None]]:
    """ψ; input, moments and dropout bits of every stage."""
    inputs, moments = [x], [settings.shared.moments]
    bits: list[Tensor | None] = []
    state, buffer = x, settings.shared.buffers[0]
    for number, stage in enumerate(stages[:-1]):
        active = gelu_(normalised(inputs[-1], stage, moments[-1], buffer))
        if number % 2 == 0:
            inputs.append(torch.mm(active, stage.weight.T, out=settings.shared.take()))
            bits.append(None)
        else:
            state, drawn = _residual(state, active, stage, settings.mlp_kept, settings.shared.take())
            inputs.append(state)
            bits.append(drawn)
        moments.append(_tracked(inputs[-1], number + 1, stages, settings))
    factor, offset = affine(stages[-1], moments[-1])
    share, last = inverse_share(settings.kernel_kept), stages[-1]
    bias = torch.addmv(last.bias, last.weight, offset)
    psi = torch.addmm(bias * share, inputs[-1], (last.weight * (factor * share)).T)
    drawn = _draw(psi, settings.kernel_kept)
    bits.append(drawn)
    if drawn is not None:
        psi.mul_(keep_factor(drawn, settings.kernel_kept, _like(buffer, psi)))
    return psi, inputs, moments, bits


def _residual(state: Tensor, active: Tensor, stage: Stage, kept: int, y: Tensor) -> tuple[Tensor, Tensor | None]:
    """y = state + drop(FC(active)), and the bits of the dropout; active is overwritten."""
    drawn = _draw(state, kept)
    if drawn is None:
        torch.add(state, stage.bias, out=y)
        return torch.addmm(y, active, stage.weight.T, out=y), None
    share = inverse_share(kept)
    torch.addmm(stage.bias * share, active, (stage.weight * share).T, out=y)
    return torch.addcmul(state, y, keep_factor(drawn, kept, active), out=y), drawn


def _draw(values: Tensor, kept: int) -> Tensor | None:
    return None if kept == LEVELS else draw_bits(values.shape, kept)


def _tracked(values: Tensor, number: int, stages: Sequence[Stage], settings: Settings) -> Moments:
    """Moments of a stage's input, towards which the running statistics move."""
    running_mean, running_variance = settings.tracking.running[number]
    mean, variance = torch.batch_norm_update_stats(values, running_mean, running_variance, settings.tracking.momentum)
    if number % 2:
        # The bias that the previous stage left out.
        running_mean.add_(stages[number - 1].bias, alpha=settings.tracking.momentum)
    return Moments(mean, _root(variance, settings.tracking.epsilon))


def _backward(
    gradient: Tensor,
    stages: Sequence[Stage],
    inputs: Sequence[Tensor],
    moments: Sequence[Moments],
    bits: Sequence[Tensor | None],
    settings: Settings,
) -> tuple[Tensor, list[Stage]]:
    """∂x, and the gradients of the fields of every stage."""
    pulled, *buffers = settings.shared.buffers
    gradient = _dropped(gradient, bits[-1], settings.kernel_kept, _like(pulled, gradient))
    carry, fields = _last_backward(gradient, stages[-1], inputs[-1], moments[-1], settings.kernel_kept)
    gradients = [fields]
    for number in range(len(stages) - 2, -1, -1):
        stage, values, share = stages[number], inputs[number], None
        if number % 2:
            pulled = _dropped(carry, bits[number], settings.mlp_kept, pulled)
            share = inverse_share(settings.mlp_kept)
        slope, constant, fields = _stage_backward(pulled, stage, values, moments[number], share, buffers)
        gradients.insert(0, fields)
        result, buffer = buffers
        factor = stage.scale * moments[number].root
        through = torch.addcmul(constant, values, slope, out=buffer)
        if number % 2:
            pulled = torch.addcmul(through, result, factor, out=pulled)
        else:
            carry.add_(through.addcmul_(result, factor))
    return carry, gradients


def _last_backward(gradient: Tensor, stage: Stage, values: Tensor, moments: Moments, kept: int) -> tuple[Tensor, Stage]:
    """Through ψ = FC∘BN, with no sweep over rows except for the products."""
    share = inverse_share(kept)
    factor, offset = affine(stage, moments)
    product, sums = transposed_product(gradient, values).mul_(share), row_sum(gradient).mul_(share)
    shift = stage.weight.T @ sums
    scale = ((stage.weight * product).sum(0) - moments.mean * shift) * moments.root
    slope, constant = _through_moments(stage, moments, scale, shift, values.shape[0])
    pulled = torch.addcmul(constant, values, slope)
    pulled.addmm_(gradient, stage.weight * (factor * share))
    return pulled, Stage(scale, shift, torch.addr(product * factor, sums, offset), sums)


def _stage_backward(
    gradient: Tensor, stage: Stage, values: Tensor, moments: Moments, share: float | None, buffers: Sequence[Tensor]
) -> tuple[Tensor, Tensor, Stage]:
    """Through FC∘GELU of the normalised values, ∂n left in the first buffer; slope and constant of what follows.

    `share` is the scale of the dropout after the stage, None where a norm follows.
    """
    result, buffer = buffers
    factor = 1.0 if share is None else share
    normal = normalised(values, stage, moments, buffer)
    active = torch.ops.aten.gelu.out(normal, out=result)
    weight = transposed_product(gradient, active).mul_(factor)
    bias = torch.zeros_like(stage.bias) if share is None else row_sum(gradient).mul_(factor)
    pulled = torch.mm(gradient, stage.weight * factor, out=result)
    torch.ops.aten.gelu_backward.grad_input(pulled, normal, grad_input=result)
    shift = row_sum(result)
    scale = (row_sum(torch.mul(result, values, out=buffer)) - moments.mean * shift) * moments.root
    slope, constant = _through_moments(stage, moments, scale, shift, values.shape[0])
    return slope, constant, Stage(scale, shift, weight, bias)


def _through_moments(stage: Stage, moments: Moments, scale: Tensor, shift: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """[K] slope and constant: ∂x = f ∂n + slope x + constant, with ∂γ = scale and ∂β = shift."""
    share = stage.scale * moments.root / -rows
    slope = share * moments.root * scale
    return slope, torch.addcmul(share * shift, slope, moments.mean, value=-1)


def _dropped(gradient: Tensor, bits: Tensor | None, kept: int, buffer: Tensor) -> Tensor:
    """Gradient before a dropout whose scale is left to the weights, in `buffer`."""
    return buffer.copy_(gradient) if bits is None else keep_factor(bits, kept, buffer).mul_(gradient)


def _like(buffer: Tensor, values: Tensor) -> Tensor:
    """The buffer, or a new one where ψ has another width than its blocks."""
    return buffer if buffer.shape == values.shape else torch.empty_like(values)


@torch.no_grad()
def share(x: Tensor, running: tuple[Tensor, Tensor], norm: WeightedBatchNorm, memory: Memory, stages: int) -> Shared:
    """What the L layers that read x [R, K] share; running statistics [L, K] move towards the moments of x."""
    momentum, epsilon = norm.momentum, norm.epsilon
    rows, layers = x.shape[0], running[0].shape[0]
    mean = row_sum(x) / rows
    shared = Shared(x, memory, layers * (stages - 1))
    offset = torch.sub(x, mean, out=shared.buffers[0])
    variance = row_sum(torch.mul(offset, offset, out=offset)) / rows
    shared.moments = Moments(mean, _root(variance, epsilon))
    running[0].lerp_(mean.expand_as(running[0]), momentum)
    running[1].lerp_((variance * (rows / (rows - 1))).expand_as(running[1]), momentum)
    return shared


def share_buffers(x: Tensor, memory: Memory) -> Shared:
    """What the layers that read x [R, K] share in evaluation."""
    return Shared(x[:EVALUATED_ROWS], memory, 0)


def affine(stage: Stage, moments: Moments) -> tuple[Tensor, Tensor]:
    """f and o [K] of a norm, y = f x + o."""
    factor = stage.scale * moments.root
    return factor, torch.addcmul(stage.shift, factor, moments.mean, value=-1)


def normalised(values: Tensor, stage: Stage, moments: Moments, buffer: Tensor) -> Tensor:
    factor, offset = affine(stage, moments)
    return torch.addcmul(offset, values, factor, out=buffer)


def gelu_(values: Tensor) -> Tensor:
    """GELU in place."""
    return torch.ops.aten.gelu_(values)


def transposed_product(one: Tensor, other: Tensor) -> Tensor:
    """[D, K] oneᵀ other of [R, D] and [R, K]."""
    (one_parts, one_rest), (other_parts, other_rest) = by_thread(one), by_thread(other)
    return torch.bmm(one_parts.mT, other_parts).sum(0).addmm_(one_rest.T, other_rest)


def row_sum(values: Tensor) -> Tensor:
    """[K] sum of the rows of [R, K]."""
    parts, rest = by_thread(values)
    return parts.sum(1).sum(0) + rest.sum(0)


def by_thread(values: Tensor) -> tuple[Tensor, Tensor]:
    """[R, K] → [T, R // T, K], one part per thread, and the remaining rows.

    Pointwise operations and products give each core a range of rows, but torch.sum a range of columns: that moves every
    other cache line from one core's cache to the other's and back, which costs more than the sum itself.
    """
    threads = torch.get_num_threads()
    rows = values.shape[0] // threads
    return values[: threads * rows].view(threads, rows, values.shape[1]), values[threads * rows :]


def _root(variance: Tensor, epsilon: float) -> Tensor:
    return torch.rsqrt(variance + epsilon)
