"""Edges of superpixel graphs, computed from the positions of the superpixels.

    σ_i = 1/8 Σ (8 smallest d_ij) + 10⁻⁸       A_ij = ½ (exp(-(d_ij/σ_i)²) + exp(-(d_ij/σ_j)²))

An edge from i to each of the 8 nodes j of largest A_ij (ties: the smaller j first), with attribute A_ij; no self
loops, no symmetrisation. In float64: a tie decided by rounding would depend on the machine.

Legend: G graphs, n nodes of the largest graph of a chunk, E = 8 N edges.
"""

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.packed import ragged
from ckgconv.graphs import pointer

NEIGHBOURS = 8
# Most graphs whose distance matrices are in memory at once, and most cells of these matrices.
CHUNK, CELLS = 1024, 2**25
MOST_NODES = 4096


def superpixel_edges(num_nodes: Tensor, pos: Tensor) -> tuple[Tensor, Tensor]:
    """edge_index [2, 8N] int16 local to each graph, and edge_attr [8N, 1] float32, from sizes [G] and pos [N, 2]."""
    _check(num_nodes, pos)
    nodes = pointer(num_nodes)
    parts = []
    chunk = min(CHUNK, CELLS // int(num_nodes.max()) ** 2)
    for graphs in torch.arange(num_nodes.shape[0]).split(chunk):
        rows, owner = ragged(nodes, graphs)
        parts.append(_nearest(pos[rows].double(), owner, num_nodes[graphs].long()))
    target = torch.cat([part[0] for part in parts]).reshape(-1)
    weight = torch.cat([part[1] for part in parts]).reshape(-1, 1)
    source = ragged(nodes, torch.arange(num_nodes.shape[0]))[0] - nodes[:-1].repeat_interleave(num_nodes.long())
    return torch.stack([source.repeat_interleave(NEIGHBOURS).short(), target.short()]), weight.float()


def _check(num_nodes: Tensor, pos: Tensor) -> None:
    """Refuse graphs without eight neighbours for each node, and graphs far beyond what superpixels are."""
    smallest, largest = (int(each) for each in num_nodes.aminmax())
    require(
        smallest > NEIGHBOURS and largest <= MOST_NODES,
        f"A graph has {smallest if smallest <= NEIGHBOURS else largest} nodes, but superpixels without edges need at "
        f"least {NEIGHBOURS + 1} nodes and at most {MOST_NODES:,}: store edge_index with them.",
    )
    require(pos.shape[1] == 2, f"pos has {pos.shape[1]} columns: give the row and the column of each superpixel.")


def _nearest(pos: Tensor, owner: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The local numbers [N, 8] of the neighbours of each node of a chunk, and A [N, 8]."""
    start = sizes.cumsum(0) - sizes
    local = torch.arange(pos.shape[0]) - start[owner]
    padded = torch.zeros(2, len(sizes), int(sizes.max()), dtype=torch.float64)
    padded[:, owner, local] = pos.T
    across, down = padded.unsqueeze(2) - padded.unsqueeze(3)
    distance = across.square_().add_(down.square_()).sqrt_()
    numbers = torch.arange(padded.shape[2])
    absent = (numbers >= sizes.unsqueeze(-1)).unsqueeze(1) | torch.eye(padded.shape[2], dtype=torch.bool)
    near = distance.masked_fill_(absent, torch.inf).topk(NEIGHBOURS, dim=-1, largest=False).values
    sigma = near.sum(-1) / NEIGHBOURS + 1e-8
    decay = distance.div_(sigma.unsqueeze(-1)).square_().neg_().exp_()
    similarity = (decay + decay.mT).mul_(0.5).masked_fill_(absent, -1.0)
    return _largest(similarity[owner, local])


def _largest(values: Tensor) -> tuple[Tensor, Tensor]:
    """Columns and values [N, 8] of the largest entries of each row [N, n]; of equal ones the smaller column first."""
    # topk orders equal values arbitrarily, so it takes 16 and a stable sort chooses 8. Where the 16th equals the 8th,
    # further equal values may have been left out, and the whole row is sorted.
    candidates = min(2 * NEIGHBOURS, values.shape[1])
    top, column = values.topk(candidates, dim=-1, sorted=False)
    column, order = column.sort(dim=-1)
    top, order = top.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    undecided = top[:, -1] == top[:, :NEIGHBOURS][:, -1]
    column, top = column.gather(-1, order)[:, :NEIGHBOURS], top[:, :NEIGHBOURS]
    column[undecided] = values[undecided].sort(dim=-1, descending=True, stable=True).indices[:, :NEIGHBOURS]
    return column, top
