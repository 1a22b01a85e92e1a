"""Propagation: predictions first, then layers of walks, and a gate for every radius; for nodes with few labels.

    z⁰_i = b_i head∘drop∘ReLU∘FC∘drop (x_i)                        each node by itself
    zˡ_i = 1/|supp(i)| Σ_{j ∈ supp(i)} ψˡ(P_ij) zˡ⁻¹_j,            l = 1 … L
    ŷ_i  = Σ_l σ(a · zˡ_i + c) zˡ_i

    ψˡ(P_ij) = |supp(i)| Σ_k softmax_k(θˡ)_k P_ij[k]

b_i is 1; in training it is 0 with probability p = `node_dropout`, and else 1/(1 - p): what is left of a node without
its own prediction is what its neighbours say (Feng et al., NeurIPS 2020).

A CKGConv (Eq. 3) whose kernel is linear in the random walks, the same in every channel, with coefficients that are
positive and sum to one: a learned average over near nodes, which cannot fit the few labels by itself. The gate reads
what a node predicts at each radius and decides how much of it counts, so a node at a border may look less far than one
inside a community (the adaptive depth of Liu, Gao and Ji, KDD 2020).

Legend: N nodes, P pairs, K coordinate channels, L layers, D width, T outputs.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.convolution import convolve
from ckgconv.nn.coordinates import rescaled
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_head
from ckgconv.nn.kernel import KernelValues
from ckgconv.ops.dropout import dropout
from ckgconv.ops.precision import without_autocast
from ckgconv.recipe import PropagationRecipe


class Propagation(GraphModel):
    """The network a recipe describes.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [N, T], or [G, T] where the head pools.
    """

    Recipe = PropagationRecipe
    recipe: PropagationRecipe

    def __init__(self, recipe: PropagationRecipe) -> None:
        super().__init__(recipe)
        require(
            self.encoding.coordinate.rescaled,
            f"model.encoding is {recipe.encoding!r}, whose values are no probabilities to average by: choose 'rrwp' or "
            f"'two_way_rrwp'.",
        )
        require(recipe.edge.kind == "none", "model.edge.kind is not 'none': a propagation reads no edge attributes.")
        require(recipe.graph_features == 0, "A propagation reads no features of graphs: set model.graph_features to 0.")
        self.predictor = make_head(recipe.head, recipe.width)
        self.kernel = WalkMixture(self.encoding.channels, recipe.layers)
        self.channels = Depthwise(recipe.head.outputs)
        self.gate = nn.Linear(recipe.head.outputs, 1)
        self.head = nn.Identity()

    def node_states(self, batch: GraphBatch) -> Tensor:
        """ŷ [N, T]."""
        with without_autocast(batch.degree):
            hidden = F.relu(self.node_encoder(batch.node_features, batch.node_features.shape[0]))
            z: Tensor = self.predictor(dropout(hidden, self.recipe.dropout, self.training))
            if self.recipe.node_dropout:
                z = z * dropout(torch.ones_like(z[:, :1]), self.recipe.node_dropout, self.training)
            gated = self._gated(z)
            for psi in self.kernel(batch.pairs):
                # A copy, not `contiguous`, which depends on whether there is more than one pair: an exported program
                # may not.
                spread = KernelValues(psi.expand(-1, z.shape[1]).clone(memory_format=torch.contiguous_format), None)
                z = convolve(self.channels, z, spread, batch.pairs)
                gated = gated + self._gated(z)
        return gated

    def _gated(self, z: Tensor) -> Tensor:
        """[N, T] σ(a · z + c) z."""
        return self.gate(z).sigmoid() * z

    def undecayed(self) -> list[nn.Parameter]:
        """All but the first map: it alone has enough parameters to fit a few labels by heart."""
        return [each for name, part in self.named_children() if name != "node_encoder" for each in part.parameters()]


class WalkMixture(nn.Module):
    """L kernels, each an average of walks: `Pairs` → L times ψ [P, 1].

    Initially all walks weigh the same. Pairs that are not stored have no walk, so ψ is zero there.
    """

    def __init__(self, walks: int, layers: int) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.empty(layers, walks))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.zeros_(self.theta)

    def forward(self, pairs: Pairs) -> tuple[Tensor, ...]:
        walks = rescaled(pairs)[: pairs.num_pairs]
        return tuple((walks @ self.theta.softmax(-1).T).split(1, dim=-1))

    def extra_repr(self) -> str:
        layers, walks = self.theta.shape
        return f"{walks} walks, layers={layers}"
