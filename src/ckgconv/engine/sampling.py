"""Steps on samples of one large graph.

    neighbours   a batch of seed nodes; layer by layer, from the last to the first, each receiver draws f nodes of its
                 support, itself included, and all nodes of that layer are the receivers of the one before it
    parts        the nodes of a few parts of a partition; every pair of the support with both ends inside

Exact, as in the whole graph: degrees, |supp(i)|, and with them P_ij and |supp(i)| P_ij of every pair. Sampled: over
which pairs of its support a receiver's mean runs, and over which nodes and pairs batch statistics run. Only seed nodes,
or training nodes of the parts, count in the loss.

Draws come from torch's generator, which every epoch seeds, so that a resumed run repeats them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.data.packed import PackedDataset, ragged, widened
from ckgconv.data.partition import partition
from ckgconv.engine.batches import training_batches
from ckgconv.engine.large_graph import Excerpt, LargeGraph, large_graph
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample
from ckgconv.graphs import LayeredBatch, pointer
from ckgconv.pairs.draw import draw_entries
from ckgconv.tasks.losses import mask_targets


@dataclass(frozen=True)
class Division:
    """The nodes of a large graph, divided into parts."""

    nodes: Tensor  # [N] sorted by part
    bounds: Tensor  # [Q + 1] where each part begins


def sampled(learner: Learner) -> bool:
    """Whether steps read samples of one large graph, not whole graphs."""
    return learner.recipe.sampling.kind != "none"


def own_graph(learner: Learner) -> LargeGraph:
    """All graphs of the learner's own data as one, built once."""
    if learner.cache.graph is None:
        learner.cache.graph = graph_of(learner, learner.data)
    return learner.cache.graph


def graph_of(learner: Learner, data: PackedDataset) -> LargeGraph:
    """All graphs of a data set as one, on the device of the data."""
    dtype = learner.model.dtype
    whole = data.batch(torch.arange(data.num_graphs, device=data.node_ptr.device))
    whole = whole.apply(lambda value: value.to(dtype) if value.is_floating_point() else value)
    return large_graph(learner.model, whole, learner.fabric.device)


def sampled_steps(learner: Learner) -> Iterator[tuple[int, Callable[[], Sample]]]:
    """For each step of an epoch, how many nodes count in it, and a function that draws its sample."""
    yield from (_neighbour_steps if learner.recipe.sampling.kind == "neighbours" else _part_steps)(learner)


def _neighbour_steps(learner: Learner) -> Iterator[tuple[int, Callable[[], Sample]]]:
    graph, fabric, sampling = own_graph(learner), learner.fabric, learner.recipe.sampling
    seeds = learner.data.target_rows("train")
    for batch in training_batches(seeds, sampling.batch_nodes, fabric.global_rank, fabric.world_size):
        yield batch.shape[0], partial(neighbour_sample, learner, graph, batch.sort().values)


def neighbour_sample(learner: Learner, graph: LargeGraph, seeds: Tensor) -> Sample:
    """Seed nodes [S], which ascend, with what their states are drawn from."""
    excerpts: list[Excerpt] = []
    receivers = seeds
    for fanout in reversed(fanouts(learner)):
        rows = graph.rows.rows(receivers)
        row, offset = draw_entries(rows.size, fanout)
        excerpts.append(graph.excerpt(receivers, rows, row, rows.start[row] + offset))
        receivers = excerpts[-1].nodes
    excerpts.reverse()
    layered = LayeredBatch(tuple(each.batch for each in excerpts), tuple(each.receivers for each in excerpts))
    return Sample(layered, node_targets(learner, seeds))


def fanouts(learner: Learner) -> tuple[int, ...]:
    """Senders drawn per receiver, for each layer of the model."""
    given, depth = learner.recipe.sampling.fanouts, learner.model.depth
    require(
        len(given) in (1, depth),
        f"training.sampling.fanouts has {len(given)} numbers for {depth} layers: give one, or one for each layer.",
    )
    return given * depth if len(given) == 1 else given


def _part_steps(learner: Learner) -> Iterator[tuple[int, Callable[[], Sample]]]:
    graph, fabric, sampling = own_graph(learner), learner.fabric, learner.recipe.sampling
    division = _division(learner, graph)
    together = max(fabric.world_size, round(sampling.batch_nodes * sampling.parts / graph.num_nodes))
    numbers = torch.arange(sampling.parts, device=division.nodes.device)
    for parts in training_batches(numbers, together, fabric.global_rank, fabric.world_size):
        chosen = division.nodes[ragged(division.bounds, parts)[0]].sort().values
        yield int(_counting(learner, chosen).sum()), partial(part_sample, learner, graph, chosen)


def part_sample(learner: Learner, graph: LargeGraph, nodes: Tensor) -> Sample:
    """Nodes [S], which ascend, and the pairs among them."""
    rows = graph.rows.rows(nodes)
    row, entry = rows.all_entries()
    inside = torch.zeros(graph.num_nodes, dtype=torch.bool, device=nodes.device).index_fill_(0, nodes, True)
    within = inside[rows.sender[entry].long()]
    counting = _counting(learner, nodes).to(graph.device)
    target = mask_targets(node_targets(learner, nodes), counting, learner.recipe.loss)
    return Sample(graph.excerpt(nodes, rows, row[within], entry[within]).batch, target)


def _division(learner: Learner, graph: LargeGraph) -> Division:
    """The learner's own graph, divided once."""
    if learner.cache.division is None:
        ends = torch.stack([graph.edges.key // graph.num_nodes, graph.edges.key % graph.num_nodes])
        part = partition(ends, graph.num_nodes, learner.recipe.sampling.parts)
        count = torch.bincount(part, minlength=learner.recipe.sampling.parts)
        learner.cache.division = Division(part.argsort(stable=True), pointer(count))
    return learner.cache.division


def node_targets(learner: Learner, nodes: Tensor) -> Tensor:
    """Targets of nodes, on the device of the model."""
    assert learner.data.y is not None
    y = widened(learner.data.y[nodes]).to(learner.fabric.device)
    return y.to(learner.model.dtype) if y.is_floating_point() else y


def _counting(learner: Learner, nodes: Tensor) -> Tensor:
    """Which of the nodes are training nodes."""
    if learner.cache.training_nodes is None:
        rows = learner.data.target_rows("train")
        mask = torch.zeros(int(learner.data.node_ptr[-1]), dtype=torch.bool, device=rows.device)
        learner.cache.training_nodes = mask.index_fill_(0, rows, True)
    return learner.cache.training_nodes[nodes]
