"""Propagation: features averaged over walks, then each node by itself; for nodes with few labels.

    x⁰_i = b_i x_i
    xᵏ_i = 1/|supp(i)| Σ_{j ∈ supp(i)} ψ(P_ij) xᵏ⁻¹_j,        k = 1 … K
    h_i  = drop∘ReLU∘FC∘drop ( 1/(K + 1) Σ_k xᵏ_i ),          ŷ_i = head(h_i)

    ψ(P_ij) = |supp(i)| · mean of the walks in P_ij

CKGConvs (Eq. 3) with a kernel that has no parameters: a fixed average of coordinates, the same in every channel, which
cannot fit the few labels by itself. With `looped_walks` of one step ψ is GCN's propagation matrix S, and the mean over
k a single CKGConv with the kernel mean([I, S, …, S^K]_ij); K of them over edges cost less than one over all pairs.
K is `model.order`.

b_i is 1; in training it is 0 with probability p = `node_dropout`, and else 1/(1 - p): without its own features, a node
is known by those of its neighbours. Predictions of several such draws should agree (`tasks.consistency`). This is the
form of Graph Random Neural Networks (Feng et al., NeurIPS 2020).

x are numbers, scaled as `model.node` says; attributes of another kind are embedded first, which a linear map of their
one-hot columns would also be.

Legend: N nodes, P pairs, F feature columns, D width, T outputs.
"""

import torch
from torch import Tensor
from torch.nn import functional as F

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.channels import Shared
from ckgconv.nn.convolution import convolve
from ckgconv.nn.coordinates import rescaled
from ckgconv.nn.encoders import LinearEncoder
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_relu_head
from ckgconv.nn.kernel import KernelValues
from ckgconv.ops.dropout import dropout
from ckgconv.ops.precision import without_autocast
from ckgconv.recipe import PropagationRecipe

# Columns averaged at a time: those of some thousand nodes stay in the cache of a CPU.
BLOCK = 128


class Propagation(GraphModel):
    """The network a recipe describes.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [N, T], or [G, T] where the head pools.
    """

    Recipe = PropagationRecipe
    recipe: PropagationRecipe

    def __init__(self, recipe: PropagationRecipe) -> None:
        super().__init__(recipe)
        require(
            self.encoding.coordinate.rescaled and self.encoding.coordinate.diagonal_skips is not None,
            f"model.encoding is {recipe.encoding!r}, whose values are no probabilities to average by: choose "
            f"'looped_walks', 'rrwp' or 'two_way_rrwp'.",
        )
        require(recipe.edge.kind == "none", "model.edge.kind is not 'none': a propagation reads no edge attributes.")
        self.channels = Shared()
        self.head = make_relu_head(recipe.head, self.head_width)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """h [N, D]."""
        encoder, features = self.node_encoder, batch.node_features
        with without_autocast(batch.degree):
            if isinstance(encoder, LinearEncoder):
                mean = self.averaged(encoder.scaled(features), batch.pairs)
                hidden = encoder.linear(encoder.dropped(mean))
            else:
                hidden = self.averaged(encoder(features, features.shape[0]), batch.pairs)
            return dropout(F.relu(hidden), self.recipe.dropout, self.training)

    def averaged(self, x: Tensor, pairs: Pairs) -> Tensor:
        """x [N, ·] → mean of x⁰ … x^K [N, ·]."""
        kept = dropout(x.new_ones(x.shape[0], 1), self.recipe.node_dropout, self.training)
        psi = KernelValues(self.kernel(pairs), None)
        # The kernel is the same in every channel, so that blocks of columns can be averaged one after the other.
        return torch.cat([self._mean(block * kept, psi, pairs) for block in x.split(BLOCK, dim=1)], dim=1)

    def _mean(self, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
        """Mean of x⁰ … x^K [N, ·]."""
        total = x
        for _ in range(self.recipe.order):
            x = convolve(self.channels, x, psi, pairs)
            total = total + x
        return total / (self.recipe.order + 1)

    def kernel(self, pairs: Pairs) -> Tensor:
        """ψ [P, 1]; pairs that are not stored have no walk, so ψ is zero there."""
        walks = rescaled(pairs)[: pairs.num_pairs, self.encoding.coordinate.diagonal_skips :]
        return walks.mean(-1, keepdim=True)
