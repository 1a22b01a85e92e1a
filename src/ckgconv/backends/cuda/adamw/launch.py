"""AdamW with a clipped gradient norm in two launches: sums of squares in parts, then the update.

Torch's fused optimiser needs some fifteen launches for 150 parameters, and clipping ten more.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.backends.cuda.adamw.naive import Moments, Rates
from ckgconv.ops.launch import early_options
from ckgconv.ops.tiles import wait_for_last

BLOCK = 1024
PARTS = 256


@triton.jit
def squares(gradient, step, parts, size, BLOCK: tl.constexpr, EARLY: tl.constexpr):
    """Σ g² of every PARTS-th block; the first program counts the step.

    It waits for all earlier launches first, so that `update`, which may start early, can read the gradient.
    """
    wait_for_last(EARLY)
    part = tl.program_id(0)
    if part == 0:
        tl.store(step, tl.load(step) + 1.0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(part * BLOCK, size, tl.num_programs(0) * BLOCK):
        place = start + tl.arange(0, BLOCK)
        values = tl.load(gradient + place, mask=place < size, other=0.0)
        total += values * values
    tl.store(parts + part, tl.sum(total, axis=0))


@triton.jit
def update(
    parameter, gradient, first, second, step, rate, parts, size, clip_norm, weight_decay, log_beta1, log_beta2,
    share1, share2, epsilon, average, share, BLOCK: tl.constexpr, PARTS: tl.constexpr, AVERAGED: tl.constexpr,
    EARLY: tl.constexpr,
):  # fmt: skip
    """m, v, p and the average of one block; each share is one minus its decay."""
    # `squares` writes none of these, so they are loaded while it runs.
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = place < size
    g = tl.load(gradient + place, mask=inside, other=0.0)
    m = tl.load(first + place, mask=inside, other=0.0)
    v = tl.load(second + place, mask=inside, other=0.0)
    p = tl.load(parameter + place, mask=inside, other=0.0)
    wait_for_last(EARLY)
    norm = tl.sqrt(tl.sum(tl.load(parts + tl.arange(0, PARTS)), axis=0))
    clip = tl.minimum(clip_norm / (norm + 1e-6), 1.0)
    # In float64: 1 - β₂ is 0.001, and a float32 β₂ᵗ would leave 1 - β₂ᵗ three digits in the first steps.
    count = tl.load(step).to(tl.float64)
    eta = tl.load(rate)
    correction1 = (1.0 - tl.exp(count * log_beta1)).to(tl.float32)
    correction2 = (1.0 - tl.exp(count * log_beta2)).to(tl.float32)
    g *= clip
    m += share1 * (g - m)
    v += share2 * (g * g - v)
    root = tl.sqrt(v / correction2) + epsilon
    p -= eta * (weight_decay * p + m / correction1 / root)
    tl.store(first + place, m, mask=inside)
    tl.store(second + place, v, mask=inside)
    tl.store(parameter + place, p, mask=inside)
    if AVERAGED:
        a = tl.load(average + place, mask=inside, other=0.0)
        tl.store(average + place, a + share * (p - a), mask=inside)


def clipped_adamw(
    parameter: Tensor, gradient: Tensor, moments: Moments, rate: Tensor, rates: Rates, average: Tensor | None = None
) -> None:
    """One update of `parameter` [M], `moments` and, where it is given, `average` [M]; see `naive`."""
    size = parameter.shape[0]
    parts = torch.empty(PARTS, dtype=torch.float32, device=parameter.device)
    first, second, step = moments
    early = early_options(parameter)
    squares[(PARTS,)](gradient, step, parts, size, BLOCK, early["EARLY"])
    update[(-(-size // BLOCK),)](
        parameter, gradient, first, second, step, rate, parts, size, rates.clip_norm, rates.weight_decay,
        math.log(rates.beta1), math.log(rates.beta2), 1 - rates.beta1, 1 - rates.beta2, rates.epsilon,
        parameter if average is None else average, 1 - rates.ema_decay, BLOCK, PARTS, average is not None, **early,
    )  # fmt: skip
