"""The two degree scalers (Eqs. 7 and 8).

    after the convolution   y'_i  = y_i ⊙ θ₁ + √d_i · y_i ⊙ θ₂
    injected into P         P̂_ij = P_ij ⊙ θ₁ + (√d_i θ₂) ⊙ P_ij ⊙ (θ₃ / √d_j)

Legend: N nodes, R rows, D channels, C coordinate channels.
"""

import torch
from torch import Tensor, nn

from ckgconv.graphs import Pairs


class DegreeScaler(nn.Module):
    """Restores the degree, which a mean over the support hides: y [N, D], degree [N] → [N, D]."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.theta1 = nn.Parameter(torch.empty(channels))
        self.theta2 = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        deviation = (self.theta1.shape[0] + 1) ** -0.5
        nn.init.normal_(self.theta1, std=deviation)
        nn.init.normal_(self.theta2, std=deviation)

    def forward(self, y: Tensor, degree: Tensor) -> Tensor:
        return y * self.theta1 + root(degree).unsqueeze(-1) * y * self.theta2

    def extra_repr(self) -> str:
        return str(self.theta1.shape[0])


def root(degree: Tensor) -> Tensor:
    """√d, with gradient 0 instead of infinity at d = 0."""
    positive = degree > 0
    return torch.where(positive, degree.where(positive, 1.0).sqrt(), 0.0)


class DegreeInjection(nn.Module):
    """Injects √d_i and 1/√d_j into the coordinates: [R, C] → [R, C]; a zero row stays zero.

    An isolated node counts as degree one, so that D^½ I D^-½ = I holds for it too.
    """

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.theta1 = nn.Parameter(torch.empty(channels))
        self.theta2 = nn.Parameter(torch.empty(channels))
        self.theta3 = nn.Parameter(torch.empty(channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initially the identity plus a small share of the normalised walk."""
        nn.init.ones_(self.theta1)
        nn.init.constant_(self.theta2, 0.1)
        nn.init.ones_(self.theta3)

    def forward(self, coordinates: Tensor, degree: Tensor, pairs: Pairs) -> Tensor:
        return coordinates * (self.theta1 + degree_ratio(coordinates, degree, pairs) * (self.theta2 * self.theta3))

    def extra_repr(self) -> str:
        return str(self.theta1.shape[0])


def degree_ratio(coordinates: Tensor, degree: Tensor, pairs: Pairs) -> Tensor:
    """[R, 1] √(d_i/d_j) of each row of the coordinates, zero on zero rows."""
    positive = degree.where(degree > 0, 1.0).sqrt()
    ratio = (positive.index_select(0, pairs.receiver) / positive.index_select(0, pairs.sender)).unsqueeze(-1)
    if not pairs.has_zero_rows:
        return ratio
    return torch.cat([ratio, ratio.new_zeros(coordinates.shape[0] - pairs.num_pairs, 1)])
