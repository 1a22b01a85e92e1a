"""Edges of superpixel graphs, recomputed from the positions of the superpixels.

    σ_i = 1/8 Σ (8 smallest d_ij) + 10⁻⁸       A_ij = ½ (exp(-(d_ij/σ_i)²) + exp(-(d_ij/σ_j)²))

An edge from i to each of the 8 nodes j of largest A_ij (ties: the smaller j first), with attribute A_ij; no self
loops, no symmetrisation. In float64: a tie decided by rounding would depend on the machine.

Legend: G graphs, n nodes of the largest graph of a chunk, E = 8 N edges.
"""

import torch
from torch import Tensor

from ckgconv.data.packed import pointer, ragged

NEIGHBOURS = 8
# Graphs whose distances are held at once.
CHUNK = 1024


def superpixel_edges(num_nodes: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
    """edge_index [2, 8N] int16 local to each graph, and edge_attr [8N, 1] float32, from sizes [G] and pos [N, 2]."""
    nodes = pointer(num_nodes)
    parts = []
    for graphs in torch.arange(num_nodes.shape[0]).split(CHUNK):
        rows, owner = ragged(nodes, graphs)
        parts.append(_nearest(pos[rows].double(), owner, num_nodes[graphs].long()))
    target = torch.cat([part[0] for part in parts]).reshape(-1)
    weight = torch.cat([part[1] for part in parts]).reshape(-1, 1)
    source = ragged(nodes, torch.arange(num_nodes.shape[0]))[0] - nodes[:-1].repeat_interleave(num_nodes.long())
    return torch.stack([source.repeat_interleave(NEIGHBOURS).short(), target.short()]), weight.float()


def _nearest(pos: Tensor, owner: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """Of each node of a chunk: the local numbers [N, 8] of its neighbours, and A [N, 8]."""
    start = sizes.cumsum(0) - sizes
    local = torch.arange(pos.shape[0]) - start[owner]
    padded = torch.zeros(len(sizes), int(sizes.max()), 2, dtype=torch.float64)
    padded[owner, local] = pos
    difference = padded.unsqueeze(1) - padded.unsqueeze(2)
    distance = difference.square().sum(-1).sqrt()
    slots = torch.arange(padded.shape[1])
    absent = (slots >= sizes.unsqueeze(-1)).unsqueeze(1) | torch.eye(padded.shape[1], dtype=torch.bool)
    near = distance.masked_fill(absent, torch.inf).topk(NEIGHBOURS, dim=-1, largest=False).values
    sigma = near.sum(-1) / NEIGHBOURS + 1e-8
    decay = torch.exp(-(distance / sigma.unsqueeze(-1)).square())
    similarity = (0.5 * (decay + decay.mT)).masked_fill(absent, -1.0)
    ordered = similarity[owner, local].sort(dim=-1, descending=True, stable=True)
    return ordered.indices[:, :NEIGHBOURS], ordered.values[:, :NEIGHBOURS]
