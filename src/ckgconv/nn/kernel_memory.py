"""Values that a kernel has for each row of its pairs: κ of `step_memory`.

Legend: S stages but the last, D width, C channels of ψ.
"""

from typing import TYPE_CHECKING

import torch

from ckgconv.nn.kernel_operation import is_one_operation
from ckgconv.nn.norm import NoNorm

if TYPE_CHECKING:
    from ckgconv.nn.kernel import Kernel


def values_per_row(kernel: "Kernel") -> int:
    """Inputs of norms, activations and linear maps (3 S + 1, without norms 2 S), ψ, masks; without gradients only ψ."""
    if not torch.is_grad_enabled():
        return kernel.layers * kernel.channels
    stages, width = 2 * len(kernel.blocks), kernel.linear.weight.shape[-1]
    inputs = 3 * stages + 1 if not isinstance(kernel.norm, NoNorm) else 2 * stages
    return kernel.layers * (inputs * width + kernel.channels + mask_values(kernel))


def values_per_kind(kernel: "Kernel") -> int:
    """The same for a kind of pairs: `ops.kernel_mlp` keeps only input and activation of each stage, and ψ."""
    if not (torch.is_grad_enabled() and kernel.training and is_one_operation(kernel)):
        return kernel.values_per_row()
    return kernel.layers * (4 * len(kernel.blocks) * kernel.linear.weight.shape[-1] + kernel.channels)


def mask_values(kernel: "Kernel") -> int:
    """The masks of a layer, of at least a byte per entry, counted in values of four bytes."""
    masked = kernel.linear.weight.shape[-1] * sum(block.dropout > 0 for block in kernel.blocks)
    masked += kernel.channels * (kernel.kernel_dropout > 0)
    return masked // 4 if kernel.training else 0
