"""CKGConv with 1-RRWP is a layer of an equivariant set network (Proposition 4.1).

P = [I],  ψ(p) = γ p + β   ⇒   y_i = γ x_i + β (1/n Σ_j x_j) + b
"""

import torch
from torch import Tensor, nn

from ckgconv.nn import CKGConv
from ckgconv.theory.fixed import bare_convolution


def set_layer(gamma: Tensor, beta: Tensor, bias: Tensor) -> CKGConv:
    """The set-network layer with γ, β, b, each [D]: a CKGConv on the identity alone, which no edge can influence."""
    channels = gamma.shape[0]
    kernel = nn.Linear(1, channels)
    conv = bare_convolution(channels, kernel, pe="rrwp", steps=0).to(gamma.dtype)
    with torch.no_grad():
        kernel.weight.copy_(gamma.unsqueeze(-1))
        kernel.bias.copy_(beta)
        conv.convolution.projection.bias.copy_(bias)
    return conv
