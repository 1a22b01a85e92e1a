"""Convolutions whose kernel depends on node features: attention, both side by side, and a gate on ψ.

    convolution   c_i = 1/|supp(i)| Σ_j ψ_ij ⊙ x_j                                    of CKGConv, ψ = ψ(P) alone
    attention     a_i = Σ_j α_ij V x_j        α_ij = softmax_{j ∈ supp(i)} (Q x_i · K x_j / √d + b_ij)   for each head
    parallel      [c_i ‖ a_i]
    modulated     m_i = 1/|supp(i)| Σ_j ψ_ij ⊙ (1 + q_i ⊙ k_j) ⊙ x_j      q = tanh(Q x), k = tanh(K x)
                      = c_i + q_i ⊙ 1/|supp(i)| Σ_j ψ_ij ⊙ (k_j ⊙ x_j)

The bias b_ij is what a kernel makes of P_ij. Attention is a convolution with the kernel |supp(i)| α_ij. The gate is a
product of a query and a key in each channel, between 0 and 2, so that two convolutions with one ψ compute it and no
value per pair is formed. Degree scaler and projection follow, as in CKGConv.

Legend: N nodes, P pairs, D width, H heads of d channels.
"""

import torch
from torch import Tensor, nn

from ckgconv.checks import check_probability
from ckgconv.graphs import Pairs
from ckgconv.nn.channels import Channels, Depthwise, MultiHead
from ckgconv.nn.convolution import KernelConvolution, convolve
from ckgconv.nn.kernel import KernelValues
from ckgconv.nn.linear import Linear
from ckgconv.nn.node_attention import pair_scores
from ckgconv.ops.dropout import dropout
from ckgconv.ops.softmax import attention_weights


class AttentionHeads(MultiHead):
    """Queries, keys and values of H heads.

    Args:
        width: D.
        heads: H.
        head_channels: d.
        dropout: on the attention weights α.
    """

    def __init__(self, width: int, heads: int, head_channels: int, dropout: float = 0.0) -> None:
        super().__init__(width, heads, heads * head_channels)
        check_probability("attention_dropout", dropout)
        self.dropout = dropout
        self.head_channels = head_channels
        self.query = Linear(width, self.convolved)
        self.key = Linear(width, self.convolved, bias=False)  # a bias adds the same to all scores of a receiver

    def reset_parameters(self) -> None:
        for linear in (self.query, self.key, self.value):
            linear.reset_parameters()
            nn.init.xavier_normal_(linear.weight)

    def weights(self, x: Tensor, bias: Tensor, pairs: Pairs) -> KernelValues:
        """|supp(i)| α from x [N, D] and b [P, H]: the kernel [P, H] of which attention is the convolution."""
        scores = pair_scores(self.query(x), self.key(x), pairs, self.kernel) + bias
        weights = attention_weights(scores, pairs.receiver, pairs.rowptr, pairs.support_size, pairs.filled)
        return KernelValues(dropout(weights, self.dropout, self.training), None)

    def extra_repr(self) -> str:
        return f"heads={self.kernel}, head_channels={self.head_channels}, dropout={self.dropout}"


class AttentionConvolution(KernelConvolution):
    """Attention: x [N, D], biases b [P, H] as kernel values, `Pairs`, degree [N] → [N, D]."""

    channels: AttentionHeads

    def summed(self, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
        return super().summed(x, self.channels.weights(x, psi.stored, pairs), pairs)


class ParallelChannels(Channels):
    """Channels of the convolution, then those of the attention heads; `kernel_dropout` acts on ψ."""

    def __init__(self, width: int, heads: AttentionHeads, kernel_dropout: float = 0.0) -> None:
        super().__init__()
        check_probability("kernel_dropout", kernel_dropout)
        self.depthwise = Depthwise(width)
        self.heads = heads
        self.kernel = width + heads.kernel
        self.convolved = width + heads.convolved
        self.kernel_dropout = kernel_dropout

    def reset_parameters(self) -> None:
        self.heads.reset_parameters()


class ParallelConvolution(KernelConvolution):
    """Both: x [N, D], ψ and b as kernel values [P, D + H], `Pairs`, degree [N] → [N, D]."""

    channels: ParallelChannels

    def reset_parameters(self) -> None:
        """The projection reads no attention at first."""
        super().reset_parameters()
        with torch.no_grad():
            self.projection.weight[:, self.channels.depthwise.convolved :] = 0

    def summed(self, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
        depthwise, heads = self.channels.depthwise, self.channels.heads
        kernel, bias = self.parts(psi)
        convolved = convolve(depthwise, x, KernelValues(kernel, None), pairs)
        attended = convolve(heads, x, heads.weights(x, bias, pairs), pairs)
        return torch.cat([convolved, attended], dim=-1)

    def parts(self, psi: KernelValues) -> tuple[Tensor, Tensor]:
        """ψ [P, D], after its dropout, and b [P, H]."""
        kernel, bias = psi.stored.split([self.channels.depthwise.kernel, self.channels.heads.kernel], dim=-1)
        return dropout(kernel, self.channels.kernel_dropout, self.training), bias


class Gates(Depthwise):
    """A query and a key in each channel; `dropout` acts on the queries, whose gates are then open."""

    def __init__(self, width: int, dropout: float = 0.0) -> None:
        super().__init__(width)
        check_probability("attention_dropout", dropout)
        self.dropout = dropout
        self.query = Linear(width, width)
        self.key = Linear(width, width)

    def reset_parameters(self) -> None:
        """Gates are open at first, 1 + 0 · k."""
        nn.init.zeros_(self.query.weight)
        nn.init.zeros_(self.query.bias)
        self.key.reset_parameters()
        nn.init.xavier_normal_(self.key.weight)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """q and k [N, D] of x [N, D]."""
        query = dropout(torch.tanh(self.query(x)), self.dropout, self.training)
        return query, torch.tanh(self.key(x))


class ModulatedConvolution(KernelConvolution):
    """Convolution with gates: x [N, D], ψ [P, D], `Pairs`, degree [N] → [N, D]."""

    channels: Gates

    def summed(self, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
        query, key = self.channels(x)
        plain, keyed = convolve(self.channels, x, psi, pairs), convolve(self.channels, key * x, psi, pairs)
        return plain + query * keyed
