"""ψ of weighted rows as one operation, `ops.kernel_mlp`, without calling the modules of the kernel.

Of a batch with one row per kind of pairs, norms read each row by its weight. The operation gives the ψ and the running
statistics that the modules would, and keeps less for the backward pass.
"""

from typing import TYPE_CHECKING

from torch import Tensor

from ckgconv.nn.grouped_linear import GroupedLinear
from ckgconv.nn.hooks import has_hooks
from ckgconv.nn.norm import WeightedBatchNorm, of_group
from ckgconv.ops.batch_norm import track
from ckgconv.ops.kernel_mlp import Stage, applies, kernel_mlp

if TYPE_CHECKING:
    from ckgconv.nn.kernel import Kernel


def in_one_operation(kernel: "Kernel", x: Tensor, row_weight: Tensor | None, layer: int) -> Tensor | None:
    """ψ [R, C] of one layer in training, on pair features [R, D] with weights [R]; None where it does not apply."""
    if not kernel.training or row_weight is None or not is_one_operation(kernel):
        return None
    parts = kernel.stages()
    stages = [
        Stage(*(of_group(field, layer) for field in (norm.scale, norm.shift, linear.weight, linear.bias)))
        for norm, linear in parts
    ]
    if not applies(x, row_weight, stages):
        return None
    norms = [norm for norm, _ in parts]
    psi, means, variances, total = kernel_mlp(x, row_weight, stages, norms[0].epsilon)
    for norm, mean, variance in zip(norms, means, variances, strict=True):
        track(norm.tracked(layer), mean, variance, total)
    return psi


def is_one_operation(kernel: "Kernel") -> bool:
    """Whether it can be: batch norms and linear maps, no dropout in blocks, no hooks inside."""
    stages = kernel.stages()
    plain = all(type(norm) is WeightedBatchNorm and type(linear) is GroupedLinear for norm, linear in stages)
    one_epsilon = plain and len({norm.epsilon for norm, _ in stages}) == 1
    hooked = any(has_hooks(part) for part in kernel.modules() if part is not kernel)
    return one_epsilon and kernel.treats_equal_rows_equally and not hooked
