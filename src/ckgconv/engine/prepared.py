"""Batches that come again, prepared once.

Pseudo-coordinates and support depend on the graphs of a batch alone, not on parameters. Those of an evaluation batch,
and of a training batch of one graph, are the same in every epoch: they are kept while all that is kept takes at most
`SHARE` of the memory that was free before the first. A batch beyond that is prepared anew each time; results are the
same bit for bit.
"""

from dataclasses import dataclass, field

from torch import Tensor
from torch.utils import _pytree as pytree

from ckgconv.engine.learner import Learner
from ckgconv.graphs import GraphBatch
from ckgconv.pairs.memory import free_bytes

# Of the free memory of the device, for everything that is kept.
SHARE = 0.25


@dataclass(frozen=True)
class Prepared:
    """A batch with its targets."""

    batch: GraphBatch
    y: Tensor  # [G], [G, T] or [N]
    node_split: Tensor | None  # [N], where nodes have splits of their own
    weight: Tensor | None = None  # [G] of each graph in the loss, where graphs have weights


@dataclass
class PreparedBatches:
    """Prepared batches by the numbers of their graphs, in order."""

    most_bytes: float
    held_bytes: int = 0
    batches: dict[tuple[int, ...], Prepared] = field(default_factory=dict)


def prepare(learner: Learner, graphs: Tensor) -> Prepared:
    """The graphs of the given numbers [B], anew."""
    data = learner.batch(graphs)
    return Prepared(
        learner.model.prepare(data), data.y, getattr(data, "node_split", None), getattr(data, "target_weight", None)
    )


def prepared_once(learner: Learner, graphs: Tensor) -> Prepared:
    """As `prepare`, but kept for the next time where it fits."""
    kept = _batches_of(learner)
    numbers = tuple(graphs.tolist())
    found = kept.batches.get(numbers)
    if found is None:
        found = prepare(learner, graphs)
        size = tensor_bytes(found)
        # A module of the user's own reads PyG data as it is: nothing was prepared.
        if isinstance(found.batch, GraphBatch) and kept.held_bytes + size <= kept.most_bytes:
            kept.batches[numbers] = found
            kept.held_bytes += size
    return found


def tensor_bytes(prepared: Prepared) -> int:
    """What a prepared batch takes."""
    leaves = pytree.tree_leaves((prepared.batch, prepared.y, prepared.node_split, prepared.weight))
    return sum(leaf.nbytes for leaf in leaves if isinstance(leaf, Tensor))


def _batches_of(learner: Learner) -> PreparedBatches:
    if learner.cache.batches is None:
        learner.cache.batches = PreparedBatches(SHARE * (free_bytes(learner.fabric.device) or 0))
    return learner.cache.batches
