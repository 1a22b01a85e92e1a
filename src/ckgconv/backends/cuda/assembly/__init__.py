"""Which nodes, edges and pairs a batch of static capacity holds: a few launches on a GPU, plain torch elsewhere."""

from torch import Tensor

from ckgconv.backends.cuda.assembly import naive
from ckgconv.backends.cuda.assembly.naive import Capacity, Members
from ckgconv.ops import dispatch


def members(
    node_ptr: Tensor,
    edge_ptr: Tensor,
    ends: tuple[Tensor, Tensor],
    numbers: Tensor,
    capacity: Capacity,
    like: Tensor,
) -> Members:
    """The members of a batch of the graphs with the given numbers; floats have the dtype of `like`; see `naive`."""
    if dispatch.uses_triton(like):
        from ckgconv.backends.cuda.assembly import triton

        if capacity.graphs <= triton.MOST_GRAPHS and capacity.pairs < triton.MOST_PAIRS:
            return triton.members(node_ptr, edge_ptr, ends, numbers, capacity)
    return naive.members(node_ptr, edge_ptr, ends, numbers, capacity, like.dtype)


__all__ = ["Capacity", "Members", "members"]
