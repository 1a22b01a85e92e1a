"""The kernel ψ of one layer in training, with a weight per row in its batch statistics, as Eqs. 5 and 6 read.

    stage s:  y = FC_s( act( BN_s(x) ) )        act = GELU, but the identity in the last stage

B residual blocks are 2B stages, every second of which ends a block, whose input it adds; one more, the last, is ψ.

Legend: L layers, R rows, K channels of a stage's input, D of its output, S = 2B + 1 stages.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.batch_norm.naive import weighted_batch_norm


class Stage(NamedTuple):
    """Parameters of FC∘act∘BN, of L layers or, without the first dimension, of one."""

    scale: Tensor  # [L, K] γ
    shift: Tensor  # [L, K] β
    weight: Tensor  # [L, D, K]
    bias: Tensor  # [L, D]


FIELDS = len(Stage._fields)


def grouped(fields: Sequence[Tensor]) -> list[Stage]:
    """Stages from their fields one after the other, as an autograd function receives them."""
    return [Stage(*fields[start : start + FIELDS]) for start in range(0, len(fields), FIELDS)]


def kernel_mlp(
    x: Tensor, row_weight: Tensor, stages: Sequence[Stage], epsilon: float
) -> tuple[Tensor, list[Tensor], list[Tensor], Tensor]:
    """ψ [R, D] of x [R, K] and row_weight [R]; μ and σ² [K] of the input of every stage, and W."""
    state = values = x
    means, variances = [], []
    for number, stage in enumerate(stages):
        normal, mean, variance, total = weighted_batch_norm(values, row_weight, stage.scale, stage.shift, epsilon)
        last = number == len(stages) - 1
        values = F.linear(normal if last else F.gelu(normal), stage.weight, stage.bias)
        if number % 2:
            state = values = state + values
        means.append(mean)
        variances.append(variance)
    return values, means, variances, total
