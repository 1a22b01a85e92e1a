"""Convolutions whose weights are written down instead of learned."""

import torch
from torch import nn

from ckgconv.nn import CKGConv


def bare_convolution(channels: int, kernel: nn.Module, **options: object) -> CKGConv:
    """A CKGConv that is its convolution alone: no degree scaler after it, projection the identity."""
    conv = CKGConv(channels, channels, kernel=kernel, **{"degree_scaler": "none", **options})  # type: ignore[arg-type]
    with torch.no_grad():
        conv.convolution.projection.weight.copy_(torch.eye(channels))
        conv.convolution.projection.bias.zero_()
    return conv
