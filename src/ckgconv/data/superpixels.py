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
    padded = torch.zeros(2, len(sizes), int(sizes.max()), dtype=torch.float64)
    padded[:, owner, local] = pos.T
    across, down = padded.unsqueeze(2) - padded.unsqueeze(3)
    distance = across.square_().add_(down.square_()).sqrt_()
    slots = torch.arange(padded.shape[2])
    absent = (slots >= sizes.unsqueeze(-1)).unsqueeze(1) | torch.eye(padded.shape[2], dtype=torch.bool)
    near = distance.masked_fill_(absent, torch.inf).topk(NEIGHBOURS, dim=-1, largest=False).values
    sigma = near.sum(-1) / NEIGHBOURS + 1e-8
    decay = distance.div_(sigma.unsqueeze(-1)).square_().neg_().exp_()
    similarity = (decay + decay.mT).mul_(0.5).masked_fill_(absent, -1.0)
    return _largest(similarity[owner, local])


def _largest(values: Tensor) -> tuple[Tensor, Tensor]:
    """Places and values [N, 8] of the largest of each row [N, n]; among equals the smaller place first."""
    # Eight and as many more, in no order among equals; a row is sorted as a whole where equals may go on beyond.
    few = min(2 * NEIGHBOURS, values.shape[1])
    top, place = values.topk(few, dim=-1, sorted=False)
    place, order = place.sort(dim=-1)
    top, order = top.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    undecided = top[:, -1] == top[:, :NEIGHBOURS][:, -1]
    place, top = place.gather(-1, order)[:, :NEIGHBOURS], top[:, :NEIGHBOURS]
    place[undecided] = values[undecided].sort(dim=-1, descending=True, stable=True).indices[:, :NEIGHBOURS]
    return place, top
