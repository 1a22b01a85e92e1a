"""The place of a node in the spectrum of its graph, read by a small transformer whose tokens are frequencies.

    t_k = A [φ_k(i), λ_k] + a                          k = 1 … K, one token for each eigenvector
    t ← LN(t + O Σ_l softmax_l(Q t_k · K t_l / √d) V t_l)
    t ← LN(t + W₂ ReLU(W₁ t))                          hidden layer of 2,048, as published
    p_i = Σ_k t_k                                      over the eigenvectors that the graph has

Legend: N nodes, K eigenvectors, C channels, H heads of d = C/H channels.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ckgconv.checks import require
from ckgconv.nn.linear import Linear

HIDDEN = 2048
# A score that no softmax sees: -∞ would make NaN of a node without eigenvectors.
NEVER = -1e9


class SpectralEncoder(nn.Module):
    """Eigenvectors and eigenvalues [N, 2 K], number of eigenvectors of each node's graph [N] → [N, C]."""

    layers: Sequence["FrequencyLayer"]

    def __init__(self, channels: int, layers: int, heads: int) -> None:
        super().__init__()
        require(
            channels % heads == 0,
            f"model.encoding_heads is {heads}, which does not divide model.encoding_channels = {channels}: choose a "
            f"divisor.",
        )
        self.token = Linear(2, channels)
        self.layers = nn.ModuleList(  # type: ignore[assignment]
            FrequencyLayer(channels, heads) for _ in range(layers)
        )

    def forward(self, spectrum: Tensor, present: Tensor) -> Tensor:
        tokens = self.token(torch.stack(spectrum.chunk(2, dim=-1), dim=-1))  # [N, K, C]
        there = torch.arange(tokens.shape[1], device=present.device) < present.unsqueeze(-1)  # [N, K]
        for layer in self.layers:
            tokens = layer(tokens, there)
        return (tokens * there.unsqueeze(-1)).sum(1)


class FrequencyLayer(nn.Module):
    """One layer of the transformer: tokens [N, K, C], which are there [N, K] → [N, K, C]."""

    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = Linear(channels, 3 * channels)
        self.output = Linear(channels, channels)
        self.attention_norm = nn.LayerNorm(channels)
        self.ffn_in = Linear(channels, HIDDEN)
        self.ffn_out = Linear(HIDDEN, channels)
        self.ffn_norm = nn.LayerNorm(channels)

    def forward(self, tokens: Tensor, there: Tensor) -> Tensor:
        tokens = self.attention_norm(tokens + self.output(self.attended(tokens, there)))
        return self.ffn_norm(tokens + self.ffn_out(torch.relu(self.ffn_in(tokens))))

    def attended(self, tokens: Tensor, there: Tensor) -> Tensor:
        """[N, K, C]: sums over K tokens of few channels, so that no product of matrices is worth its launch."""
        query, key, value = self.project(tokens).unflatten(-1, (3, self.heads, -1)).unbind(-3)  # [N, K, H, d]
        scores = (query.unsqueeze(2) * key.unsqueeze(1)).sum(-1) / query.shape[-1] ** 0.5  # [N, K, K, H]
        shares = scores.masked_fill(~there[:, None, :, None], NEVER).softmax(dim=2)
        return (shares.unsqueeze(-1) * value.unsqueeze(1)).sum(2).flatten(-2)
