"""Which nodes, edges and pairs a batch of static capacity holds: a few launches on a GPU, plain torch elsewhere."""

from torch import Tensor

from ckgconv.backends.cuda.assembly import naive
from ckgconv.backends.cuda.assembly.naive import Capacity, Edges, Members
from ckgconv.ops import dispatch


def members(store: Edges, numbers: Tensor, capacity: Capacity, like: Tensor) -> Members:
    """The members of a batch of the graphs with the given numbers; floats have the dtype of `like`; see `naive`."""
    if dispatch.uses_triton(like):
        from ckgconv.backends.cuda.assembly import triton

        if capacity.graphs <= triton.MOST_GRAPHS and capacity.pairs < triton.MOST_PAIRS:
            return triton.members(store, numbers, capacity)
    return naive.members(store, numbers, capacity, like.dtype)


__all__ = ["Capacity", "Edges", "Members", "members"]
