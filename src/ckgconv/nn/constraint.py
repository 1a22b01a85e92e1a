"""What ψ may be: any number, positive, or weights of the senders of a receiver that add up to one.

    none      ψ                     mean aggregation, any sign
    softplus  log(1 + exp ψ)        mean aggregation
    softmax   |supp(i)| softmax_j ψ_ij      under the mean of the convolution, sum aggregation

Legend: P stored pairs, N nodes, C channels of ψ.
"""

from typing import Literal

from torch import Tensor
from torch.nn import functional as F

from ckgconv.graphs import Pairs
from ckgconv.ops.softmax import sparse_global_softmax, summing_softmax

Constraint = Literal["none", "softmax", "softplus"]


def constrained(
    constraint: Constraint, stored: Tensor, background: Tensor | None, pairs: Pairs
) -> tuple[Tensor, Tensor | None]:
    """ψ of stored pairs [P, C] and of pairs not stored [N, C], under the constraint."""
    if constraint == "softplus":
        return F.softplus(stored), None if background is None else F.softplus(background)
    if constraint == "softmax":
        return softmax_over_support(stored, background, pairs)
    return stored, background


def softmax_over_support(stored: Tensor, background: Tensor | None, pairs: Pairs) -> tuple[Tensor, Tensor | None]:
    """|supp(i)| · softmax_j ψ_ij: under the convolution's mean this is the sum aggregation."""
    if background is None:
        return summing_softmax(stored, pairs.receiver, pairs.support_size), None
    size = pairs.support_size.to(stored.dtype).unsqueeze(-1)
    weights, background = sparse_global_softmax(stored, background, pairs.receiver, pairs.support_size)
    return weights * size[pairs.receiver], background * size
