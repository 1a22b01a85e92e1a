"""Features of whole graphs next to their pooled node features, such as computed descriptors of a molecule.

    z = [pool(h) ‖ clip((g - mean)/s.d., ±5)]          0 where g is unknown

Mean and s.d. are those of the training split, kept as buffers, so that a saved network standardises new graphs alike.

Legend: G graphs, D width, C features of a graph.
"""

import torch
from torch import Tensor, nn

# Standard deviations. A new graph may lie far outside what was trained on, and one feature must not decide alone.
MOST_DEVIATIONS = 5.0


class GraphFeatures(nn.Module):
    """Joins standardised features [G, C] to pooled ones [G, D] → [G, D + C]."""

    mean: Tensor
    spread: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(channels))
        self.register_buffer("spread", torch.ones(channels))

    def fit(self, features: Tensor) -> None:
        """Take mean and s.d. of training graphs [G, C]; a constant or unknown feature keeps spread 1."""
        values = features.double()
        known = values.isfinite()
        count = known.sum(0).clamp(min=1)
        mean = values.where(known, 0.0).sum(0) / count
        spread = ((values - mean).where(known, 0.0).square().sum(0) / count).sqrt()
        self.mean.copy_(mean)
        self.spread.copy_(torch.where(spread > 1e-6 * (1 + mean.abs()), spread, 1.0))

    def standardised(self, features: Tensor) -> Tensor:
        """What is joined: deviations from the mean [G, C]."""
        deviations = (features.to(self.mean.dtype) - self.mean) / self.spread
        return deviations.where(deviations == deviations, 0.0).clamp(-MOST_DEVIATIONS, MOST_DEVIATIONS)

    def forward(self, pooled: Tensor, features: Tensor) -> Tensor:
        return torch.cat([pooled, self.standardised(features).to(pooled.dtype)], dim=-1)

    def extra_repr(self) -> str:
        return f"channels={self.mean.shape[0]}"
