"""A stem (Appendix A) as the equation reads.

    e = BN( a + W BN(x) )

Legend: R rows, K channels of the encoding, D width.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.ops.batch_norm.naive import weighted_batch_norm


def stem(
    x: Tensor,
    attributes: Tensor,
    scale: Tensor,
    shift: Tensor,
    weight: Tensor,
    scale_out: Tensor,
    shift_out: Tensor,
    row_weight: Tensor | None,
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """e [R, D] from x [R, K], a [R, D], W [D, K], and the moments [3, K], [3, D] (W, μ, σ²) of both norms."""
    normal, *first = weighted_batch_norm(x, row_weight, scale, shift, epsilon)
    features = attributes + F.linear(normal, weight)
    e, *second = weighted_batch_norm(features, row_weight, scale_out, shift_out, epsilon)
    moments = [torch.stack([total.expand_as(mean), mean, variance]) for mean, variance, total in (first, second)]
    return e, moments[0], moments[1]
