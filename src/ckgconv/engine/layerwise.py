"""Exact states of all nodes of a large graph, one layer after the other.

    hˡ_i = layer l (hˡ⁻¹_j, P_ij : j ∈ supp(i))        for a chunk of receivers i at a time

In evaluation norms use running statistics, so no row depends on another but through its support: chunks change nothing.
The states of one layer are kept for all nodes, and no node is computed twice, whereas the nodes within l · k hops of a
few seeds are soon the whole graph. Several processes divide the receivers among them.

Legend: N nodes, W nodes asked for, D width, T outputs.
"""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ckgconv.engine.large_graph import SHARE, Excerpt, LargeGraph
from ckgconv.engine.learner import Learner
from ckgconv.ops.all_reduce import all_reduce
from ckgconv.ops.precision import exact_products
from ckgconv.pairs.memory import free_bytes

# Nodes whose features, or states, are turned into states, or predictions, at a time.
NODES = 2**16


@torch.no_grad()
@exact_products()
def node_states(learner: Learner, graph: LargeGraph, wanted: Tensor) -> Tensor:
    """[W, D] states after the last layer of the nodes `wanted` [W], which ascend; the model is in evaluation mode."""
    model, every = learner.model, torch.arange(graph.num_nodes, device=wanted.device)
    where = _where(learner, graph)
    states = _filled(every.split(NODES), graph.without_pairs, lambda excerpt: model.input_states(excerpt.batch), where)
    for layer in range(model.depth - 1):
        share = share_of(learner, every)
        own = _filled(graph.rows.chunks(share), graph.whole, _layer(learner, layer, states), where)
        states = _joined(learner, share, own, graph.num_nodes)
    if not len(wanted):
        return states[:0]
    return _filled(graph.rows.chunks(wanted), graph.whole, _layer(learner, model.depth - 1, states), where)


@torch.no_grad()
@exact_products()
def predictions(learner: Learner, states: Tensor) -> Tensor:
    """Predictions [W, T] in the units of the data, from states [W, D]."""
    chunks = (chunk.to(learner.fabric.device) for chunk in states.split(NODES))
    return torch.cat([learner.in_units(learner.model.read_out(chunk)) for chunk in chunks])


def share_of(learner: Learner, rows: Tensor) -> Tensor:
    """This process's share of some rows; together the processes have every row once."""
    return rows.tensor_split(learner.fabric.world_size)[learner.fabric.global_rank]


def _layer(learner: Learner, layer: int, states: Tensor) -> Callable[[Excerpt], Tensor]:
    def run(excerpt: Excerpt) -> Tensor:
        before = states[excerpt.nodes.to(states.device)].to(learner.fabric.device)
        return learner.model.layer_states(layer, before, excerpt.batch).index_select(0, excerpt.receivers)

    return run


def _filled(
    chunks: Iterator[Tensor] | tuple[Tensor, ...],
    take: Callable[[Tensor], Excerpt],
    run: Callable[[Excerpt], Tensor],
    where: torch.device,
) -> Tensor:
    """What `run` returns for the chunks, one below the other."""
    return torch.cat([run(take(chunk)).to(where) for chunk in chunks])


def _joined(learner: Learner, share: Tensor, own: Tensor, nodes: int) -> Tensor:
    """The states [N, D] of all nodes, from each process's own."""
    if learner.fabric.world_size == 1:
        return own
    states = own.new_zeros(nodes, own.shape[1], device=learner.fabric.device)
    states[share.to(states.device)] = own.to(states.device)
    return all_reduce(states).to(own.device)


def _where(learner: Learner, graph: LargeGraph) -> torch.device:
    """Where the states of all nodes are kept: on the model's device, if three copies take at most `SHARE` of it."""
    device, dtype = learner.fabric.device, learner.model.dtype
    needed = 3 * graph.num_nodes * learner.model.recipe.width * dtype.itemsize
    return device if needed <= SHARE * (free_bytes(device) or 0) else torch.device("cpu")
