"""Attention over the support without a state on the pairs, as GPS has it next to its layer.

    a_i = O Σ_{j ∈ supp(i)} softmax_j(Q h_i · K h_j / √d + b_ij) V h_j        one softmax and one b for each head

Legend: N nodes, P pairs, D width, H heads of d = D/H channels.
"""

import torch
from torch import Tensor, nn

from ckgconv.checks import check_probability, require
from ckgconv.graphs import Pairs
from ckgconv.nn.convolution import mean_over_support, sender_order
from ckgconv.nn.linear import Linear
from ckgconv.ops.dropout import dropout
from ckgconv.ops.pool import spread
from ckgconv.ops.rows import gather_rows
from ckgconv.ops.softmax import attention_weights


class NodeAttention(nn.Module):
    """Attention of H heads over the support; b is 0 where none is given.

    Args:
        width: D.
        heads: H, a divisor of D.
        dropout: on the attention weights.
        named: the recipe field that holds H, for the error message about a wrong one.

    Shapes: h [N, D], `Pairs`, b [P, H] → [N, D].
    """

    def __init__(self, width: int, heads: int, dropout: float, named: str = "attention_heads") -> None:
        super().__init__()
        check_probability("attention_dropout", dropout)
        check_heads(named, heads, width)
        self.heads = heads
        self.channels = width // heads
        self.dropout = dropout
        self.project = Linear(width, 3 * width)
        self.output = Linear(width, width)

    def forward(self, h: Tensor, pairs: Pairs, bias: Tensor | None = None) -> Tensor:
        query, key, value = self.project(h).chunk(3, dim=-1)
        scores = pair_scores(query, key, pairs, self.heads)
        scores = scores if bias is None else scores + bias
        # |supp(i)| times the weights: the mean below divides by |supp(i)|.
        weights = attention_weights(scores, pairs.receiver, pairs.rowptr, pairs.support_size, pairs.filled)
        weights = dropout(weights, self.dropout, self.training).repeat_interleave(self.channels, dim=-1)
        # A copy, not `contiguous`, which depends on whether there is more than one node: an exported program may not.
        value = value.clone(memory_format=torch.contiguous_format)
        return self.output(mean_over_support(value, weights, pairs))

    def extra_repr(self) -> str:
        return f"heads={self.heads}, dropout={self.dropout}"


def pair_scores(query: Tensor, key: Tensor, pairs: Pairs, heads: int) -> Tensor:
    """q_i · k_j / √d of every head [P, H], from queries and keys [N, H d]."""
    received = spread(query, pairs.receiver, pairs.rowptr)
    products = received * gather_rows(key, pairs.sender, sender_order(pairs))
    channels = query.shape[1] // heads
    return products.view(-1, heads, channels).sum(-1) / channels**0.5


def check_heads(name: str, heads: int, width: int) -> None:
    """Refuse a number of heads that does not divide the width; `name` is the recipe's field."""
    require(
        heads > 0 and width % heads == 0,
        f"model.{name} is {heads}, which does not divide model.width = {width}: choose a divisor.",
    )


def check_stored(support: str | int) -> None:
    """Refuse a support that has no pair for a score to belong to."""
    require(
        support != "sparse_global",
        "model.support is 'sparse_global', which does not store the pairs of far nodes, and attention needs a score "
        "for each of them: choose support 'global' or a number of hops.",
    )
