"""LayerNorm erases the degree, BatchNorm does not (Proposition of Appendix C.4).

LN(f(d_i) x_i) = LN(x_i) for every f > 0, since mean and deviation over the channels scale with f(d_i);
BatchNorm's statistics run over nodes of different degrees, so f(d_i) remains.
"""

import torch
from torch import Tensor

from ckgconv.nn.norm import NORMS, NormName


def degree_survives(norm: NormName, mean_aggregated: Tensor, factor: Tensor) -> float:
    """Largest change that scaling rows [N, D] by f(d_i) = factor [N] > 0 leaves after the norm; 0 means erased."""
    module = NORMS[norm](mean_aggregated.shape[1]).to(mean_aggregated.dtype)
    module.epsilon = 1e-30  # negligible in float64
    scaled = factor.unsqueeze(-1) * mean_aggregated
    with torch.no_grad():
        return float((module(scaled) - module(mean_aggregated)).abs().max())
