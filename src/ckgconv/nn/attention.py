"""Attention over the pairs of a support with a state on every pair, as GRIT computes it.

    ê_ij = ReLU(ρ((Q h_i + K h_j) ⊙ W e_ij) + U e_ij),       ρ(x) = sign(x) √|x|
    α_ij = softmax_{j ∈ supp(i)} clamp(A · ê_ij, ±c)          one A and one softmax for each head
    y_i  = Σ_j α_ij (V h_j + ê_ij B)                          one B for each head

Legend: N nodes, P pairs, D width, H heads of d = D/H channels.
"""

import torch
from torch import Tensor, nn

from ckgconv.checks import check_probability
from ckgconv.graphs import Pairs
from ckgconv.nn.convolution import mean_over_support, sender_order
from ckgconv.nn.degree import root
from ckgconv.nn.linear import Linear
from ckgconv.nn.node_attention import check_heads
from ckgconv.ops.dropout import dropout
from ckgconv.ops.pool import pool, spread
from ckgconv.ops.rows import gather_rows
from ckgconv.ops.softmax import attention_weights


class PairAttention(nn.Module):
    """Attention with a state on every pair: the nodes of the pair update it, and the score is read from it.

    Args:
        width: D.
        heads: H, a divisor of D.
        clamp: c, the largest score.
        dropout: on the attention weights α.

    Shapes: h [N, D], e [P, D], `Pairs` → y [N, D] and ê [P, D].
    """

    def __init__(self, width: int, heads: int, clamp: float = 5.0, dropout: float = 0.0) -> None:
        super().__init__()
        check_probability("attention_dropout", dropout)
        check_heads("heads", heads, width)
        self.heads = heads
        self.channels = width // heads
        self.clamp = clamp
        self.dropout = dropout
        self.query = Linear(width, width)
        self.key = Linear(width, width, bias=False)
        self.value = Linear(width, width, bias=False)
        self.pair = Linear(width, 2 * width)  # W and U of each head, one after the other
        self.score = nn.Parameter(torch.empty(heads, self.channels))
        self.mix = nn.Parameter(torch.empty(heads, self.channels, self.channels))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Xavier normal, as published; the shapes of A [d, H, 1] and B [d, H, d] there decide the deviation."""
        for linear in (self.query, self.key, self.value, self.pair):
            linear.reset_parameters()
            nn.init.xavier_normal_(linear.weight)
        nn.init.normal_(self.score, std=(2 / (self.heads + self.channels)) ** 0.5)
        nn.init.normal_(self.mix, std=(2 / (self.channels * (self.heads + self.channels))) ** 0.5)

    def forward(self, h: Tensor, e: Tensor, pairs: Pairs) -> tuple[Tensor, Tensor]:
        state = self.pair_state(h, e, pairs)
        # |supp(i)| α: both means below divide by |supp(i)|.
        weights = dropout(self.weights(state, pairs), self.dropout, self.training)
        shares = weights.repeat_interleave(self.channels, dim=-1)
        values = mean_over_support(self.value(h), shares, pairs)
        # A support given by the user may be empty; such a node receives nothing.
        size = pairs.support_size.clamp(min=1).unsqueeze(-1)
        states = pool(shares * state, pairs.receiver, pairs.rowptr, "sum") / size
        return self.received(values, states), state

    def received(self, values: Tensor, states: Tensor) -> Tensor:
        """y [N, D] from Σ_j α_ij V h_j and Σ_j α_ij ê_ij, both [N, D]."""
        # `bmm` and a copy, not `einsum` and `reshape`, which depend on whether there is more than one node: an exported
        # program may not.
        mixed = states.view(-1, self.heads, self.channels).transpose(0, 1).bmm(self.mix).transpose(0, 1)
        return values + mixed.clone(memory_format=torch.contiguous_format).view(values.shape)

    def pair_state(self, h: Tensor, e: Tensor, pairs: Pairs) -> Tensor:
        """ê [P, D]."""
        scale, shift = self.pair(e).view(-1, self.heads, 2 * self.channels).chunk(2, dim=-1)
        both = spread(self.query(h), pairs.receiver, pairs.rowptr)
        both = both + gather_rows(self.key(h), pairs.sender, sender_order(pairs))
        return torch.relu(signed_root(both * scale.flatten(1)) + shift.flatten(1))

    def weights(self, state: Tensor, pairs: Pairs) -> Tensor:
        """|supp(i)| α [P, H]."""
        scores = (state.view(-1, self.heads, self.channels) * self.score).sum(-1)
        scores = scores.clamp(-self.clamp, self.clamp)
        return attention_weights(scores, pairs.receiver, pairs.rowptr, pairs.support_size, pairs.filled)

    def extra_repr(self) -> str:
        return f"heads={self.heads}, clamp={self.clamp}, dropout={self.dropout}"


def signed_root(x: Tensor) -> Tensor:
    """ρ(x) = sign(x) √|x|, with gradient 0 instead of infinity at 0."""
    return x.sign() * root(x.abs())
