"""Layers of message passing, from nodes and edges to what each node receives.

    gcn         m_i = Σ_{j ∈ N(i) ∪ i} (d_i d_j)^(-½) W h_j, d counts the node itself
    gcn_edges   m_i = Σ_{j ∈ N(i)} ReLU(W h_j + e_ij) + b, the GCN of GNN+ where edges have attributes
    gine        m_i = MLP(h_i + Σ_{j ∈ N(i)} ReLU(h_j + e_ij))
    gatv2       m_i = Σ_{j ∈ N(i)} softmax_j(a · LeakyReLU(A h_i + B h_j + C e_ij)) B h_j
    pna         m_i = W [h_i ‖ mean, max, min and s.d. of MLP(h_i, h_j, e_ij), each under three scalers of d_i]
    gatedgcn    see `gated_gcn`

Edges without attributes have e_ij = 0; a GatedGCN, whose edges have a state, needs attributes.

Legend: N nodes, E edges, D width.
"""

import warnings

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GCNConv, GINEConv, PNAConv

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch
from ckgconv.nn.gated_gcn import GatedGCNLayer
from ckgconv.nn.linear import Linear
from ckgconv.nn.node_attention import check_heads
from ckgconv.recipe import MessagePassingRecipe

# PNA scales by log(d + 1) over its mean. The mean is that of molecules, degrees 1 to 3, whatever the data: another one
# multiplies each scaler by a constant, which the linear map after it absorbs.
PNA_DEGREES = torch.tensor([0, 1, 2, 1])
# On a GPU PyG advises another package for its largest and smallest messages, one that this package does without.
warnings.filterwarnings("ignore", "The usage of `scatter", UserWarning)


class GCNLayer(nn.Module):
    """h [N, D], edges [E, D], `GraphBatch` → m [N, D], edges [E, D], which are not read."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GCNConv(width, width, add_self_loops=False, normalize=False)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        sender, receiver = batch.edge_index
        scale = (batch.degree + 1).rsqrt()
        passed = self.layer(h, batch.edge_index, scale[sender] * scale[receiver])
        own = (scale.square().unsqueeze(-1) * h) @ self.layer.lin.weight.T
        return passed + own, edges


class GCNEdgesLayer(nn.Module):
    """The same shapes; sums are not normalised, and a residual sum keeps the node itself."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.linear = Linear(width, width, bias=False)
        self.shift = nn.Parameter(torch.zeros(width))

    def reset_parameters(self) -> None:
        self.linear.reset_parameters()
        nn.init.zeros_(self.shift)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        sender, receiver = batch.edge_index
        messages = torch.relu(self.linear(h)[sender] + edges).to(h.dtype)
        return torch.zeros_like(h).index_add(0, receiver, messages) + self.shift, edges


class GINELayer(nn.Module):
    """The same shapes; the MLP has one hidden layer of D."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = GINEConv(nn.Sequential(Linear(width, width), nn.ReLU(), Linear(width, width)))

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges), edges


class GATv2Layer(nn.Module):
    """The same shapes; scores read edge attributes where there are any, and a residual sum keeps the node itself."""

    def __init__(self, width: int, heads: int, reads_edges: bool) -> None:
        super().__init__()
        check_heads("heads", heads, width)
        self.reads_edges = reads_edges
        edge_dim = width if reads_edges else None
        self.layer = GATv2Conv(width, width // heads, heads, add_self_loops=False, edge_dim=edge_dim)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges if self.reads_edges else None), edges


class PNALayer(nn.Module):
    """The same shapes, in one tower."""

    def __init__(self, width: int, reads_edges: bool) -> None:
        super().__init__()
        aggregators, scalers = ["mean", "max", "min", "std"], ["identity", "amplification", "attenuation"]
        self.reads_edges = reads_edges
        edge_dim = width if reads_edges else None
        self.layer = PNAConv(width, width, aggregators, scalers, deg=PNA_DEGREES, edge_dim=edge_dim)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        return self.layer(h, batch.edge_index, edges if self.reads_edges else None), edges


def make_layer(recipe: MessagePassingRecipe) -> nn.Module:
    """The layer of a recipe."""
    width, reads_edges = recipe.width, recipe.edge.kind != "none"
    if recipe.layer == "gcn":
        require(
            not reads_edges,
            f"model.edge.kind is {recipe.edge.kind!r}, but a GCN reads no edge attributes: set it to 'none' and "
            f"model.edge.sizes to [], or choose layer 'gcn_edges'.",
        )
        return GCNLayer(width)
    if recipe.layer == "gcn_edges":
        return GCNEdgesLayer(width)
    if recipe.layer == "gine":
        return GINELayer(width)
    if recipe.layer == "gatv2":
        return GATv2Layer(width, recipe.heads, reads_edges)
    if recipe.layer == "pna":
        return PNALayer(width, reads_edges)
    require(
        reads_edges,
        "model.edge.kind is 'none', but a GatedGCN keeps a state on every edge that begins with attributes: set it "
        "to 'constant' where edges have none.",
    )
    return GatedGCNLayer(width, recipe.dropout, recipe.residual)
