"""L linear maps of one shape, one for each layer of a network whose kernels are evaluated together."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.nn.initialise import linear_bias, small_normal
from ckgconv.nn.norm import of_group


class GroupedLinear(nn.Module):
    """y = x Wᵀ + b with a W and b per group: [R, in] → [R, out]."""

    def __init__(self, in_channels: int, out_channels: int, groups: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(groups, out_channels, in_channels))
        self.bias = nn.Parameter(torch.empty(groups, out_channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        small_normal(self.weight)
        linear_bias(self.bias, self.weight.shape[-1])

    def forward(self, x: Tensor, group: int) -> Tensor:
        return F.linear(x, of_group(self.weight, group), of_group(self.bias, group))

    def extra_repr(self) -> str:
        groups, out_channels, in_channels = self.weight.shape
        return f"{in_channels} → {out_channels}, groups={groups}"
