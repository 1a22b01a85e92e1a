"""The kernel ψ of one layer with weighted batch statistics; `naive` is the specification of `chunked`."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ckgconv.ops.all_reduce import several_processes
from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.kernel_mlp.chunked import kernel_mlp
from ckgconv.ops.kernel_mlp.naive import FIELDS, Stage, grouped


def applies(x: Tensor, row_weight: Tensor, stages: Sequence[Stage]) -> bool:
    """Whether all stages can be one operation: on a CPU, in the one precision of x and its parameters."""
    if torch.compiler.is_compiling() or under_transform() or several_processes() or torch.is_autocast_enabled("cpu"):
        return False
    values = [x, row_weight, *(field for stage in stages for field in stage)]
    alike = all(value.dtype == x.dtype and value.device == x.device for value in values)
    return alike and x.device.type == "cpu" and x.dtype in (torch.float32, torch.float64) and x.shape[0] > 0


__all__ = ["FIELDS", "Stage", "applies", "grouped", "kernel_mlp"]
