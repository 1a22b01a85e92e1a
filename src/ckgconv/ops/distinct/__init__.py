"""Distinct rows, on a CPU: what does not depend on the other rows needs to be computed once for each.

`naive` is the specification of `hashed`. On a GPU a sort costs more than equal rows do.
"""

import torch
from torch import Tensor

from ckgconv.ops.convolution import Orders, scaled_convolution
from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.distinct import convolution, hashed, naive
from ckgconv.ops.distinct.convolution import Support
from ckgconv.ops.distinct.hashed import Distinct
from ckgconv.ops.precision import HALVES

LARGEST_SHARE = 0.9  # of distinct rows among all, up to which computing them alone saves time


def distinct_rows(*columns: Tensor) -> Distinct | None:
    """The distinct rows of tensors [R, …] side by side; None where too few rows are equal to save time.

    They are constants: None for tensors with a gradient, which equal values need not share.
    """
    if _needs_plain_torch() or any(part.requires_grad for part in columns):
        return None
    if any(part.device.type != "cpu" or part.shape[0] == 0 for part in columns):
        return None
    found = hashed.distinct_rows(*columns)
    return None if found is None or len(found.representative) > LARGEST_SHARE * len(found.kind) else found


def spread_rows(values: Tensor, rows: Distinct) -> Tensor:
    """[R, D] the values [U, D] of the distinct row that each row equals."""
    if _needs_plain_torch():
        return naive.spread_rows(values, rows.kind)
    return hashed.Spread.apply(values, rows)


def distinct_convolution(x: Tensor, psi: Tensor, support: Support, rows: Distinct) -> Tensor:
    """`scaled_convolution` with ψ [U, D] of the distinct rows in place of that of all pairs."""
    if _needs_plain_torch() or x.dtype != psi.dtype or x.dtype in HALVES:
        receiver, sender, support_size, rowptr = support
        return scaled_convolution(x, spread_rows(psi, rows), receiver, sender, support_size, Orders(rowptr))
    return convolution.distinct_convolution(x, psi, support, rows)


def _needs_plain_torch() -> bool:
    """Whether operations are followed by a transform or a compiler, which neither hashes nor buffers survive."""
    return under_transform() or torch.compiler.is_compiling()


__all__ = ["Distinct", "Support", "distinct_convolution", "distinct_rows", "spread_rows"]
