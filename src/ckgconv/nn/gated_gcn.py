"""GatedGCN with a state on every edge, which gates the messages and is updated with them.

    ê_ij = e_ij' + D h_j + E h_i,   e_ij' = C e_ij
    m_i  = A h_i + Σ_j σ(ê_ij) ⊙ B h_j / (Σ_j σ(ê_ij) + ε)
    e_ij ← e_ij + ReLU(BN(ê_ij))

Legend: N nodes, E edges, D width.
"""

import torch
from torch import Tensor, nn

from ckgconv.graphs import GraphBatch
from ckgconv.nn.linear import Linear
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.dropout import dropout

EPSILON = 1e-6


class GatedGCNLayer(nn.Module):
    """h [N, D], edges [E, D], `GraphBatch` → m [N, D], edges [E, D]."""

    def __init__(self, width: int, dropout: float = 0.0, residual: bool = True) -> None:
        super().__init__()
        self.dropout = dropout
        self.residual = residual
        self.own = Linear(width, width)
        self.message = Linear(width, width)
        self.edge = Linear(width, width)
        self.sender = Linear(width, width)
        self.receiver = Linear(width, width)
        self.edge_norm = WeightedBatchNorm(width)

    def forward(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        received, state = self.messages(h, edges, batch)
        weight = None if batch.node_weight is None else batch.node_weight[batch.edge_index[1]]
        change = dropout(torch.relu(self.edge_norm(state, weight)), self.dropout, self.training)
        edges = edges + change if self.residual else change
        return self.own(h) + received, edges if weight is None else edges * weight.unsqueeze(-1)

    def messages(self, h: Tensor, edges: Tensor, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """What nodes receive [N, D], and ê [E, D]."""
        sender, receiver = batch.edge_index
        state = self.edge(edges) + self.sender(h)[sender] + self.receiver(h)[receiver]
        gate = torch.sigmoid(state)
        sums = torch.cat([gate * self.message(h)[sender], gate], dim=-1)
        summed, total = h.new_zeros(h.shape[0], 2 * h.shape[1]).index_add(0, receiver, sums.to(h.dtype)).chunk(2, -1)
        return summed / (total + EPSILON), state
