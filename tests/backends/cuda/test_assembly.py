"""Members of a batch by Triton kernels against plain torch: the same numbers, padding included."""

import pytest
import torch
from on_device import DEVICE, needs_triton

from ckgconv.backends.cuda.assembly import naive
from ckgconv.backends.cuda.assembly.naive import Capacity, Edges

pytestmark = needs_triton


def random_store(sizes):
    """Pointers and edges of graphs with the given numbers of nodes; some edges are parallel, some are loops."""
    counts = [3 * size for size in sizes]
    ends = torch.cat([torch.randint(0, max(size, 1), (2, 3 * size)) for size in sizes], dim=1)
    node_ptr = torch.tensor([0, *sizes]).cumsum(0)
    return node_ptr, torch.tensor([0, *counts]).cumsum(0), ends.to(torch.int16)


@pytest.mark.parametrize(
    ("sizes", "numbers"),
    [
        ([5, 1, 7, 3], [2, 0, 3]),
        ([4, 0, 2, 6, 1], [4, 1, 3, -1, -1]),
        ([3], [0]),
        ([2, 3], [-1, -1]),
        ([30, 2], [0, 1]),
        ([30, 2], [1, 1]),
        ([2] * 9, [8] * 5),
    ],
)
def test_members(sizes, numbers):
    from ckgconv.backends.cuda.assembly import triton as fused

    (*pointers, ends), chosen = random_store(sizes), torch.tensor(numbers).repeat_interleave(2)[::2]
    # Padding reads the first edge of the store, which may name a node that the last graph does not have.
    ends[:, :1] = max(sizes[0] - 1, 0)
    both = ends.t().contiguous().t()  # with a stride
    taken = [sizes[number] for number in numbers if number >= 0]
    capacity = Capacity(
        graphs=len(numbers),
        nodes=sum(taken) + 3,
        pairs=sum(size**2 for size in taken) + 5,
        edges=3 * sum(taken) + 2,
        largest=max(sizes),
    )
    expected = naive.members(Edges(*pointers, both[1], both[0]), chosen, capacity, torch.float32)
    there = both.to(DEVICE)
    store = Edges(*(value.to(DEVICE) for value in pointers), there[1], there[0])
    found = fused.members(store, chosen.to(DEVICE), capacity)
    for name, mine, theirs in zip(expected._fields, found, expected, strict=True):
        if name == "nodes":
            for part, other, wanted in zip(theirs._fields, mine, theirs, strict=True):
                assert torch.equal(other.cpu(), wanted), part
        else:
            assert mine.shape == theirs.shape, name
            torch.testing.assert_close(mine.cpu(), theirs, rtol=1e-6, atol=0, msg=name)
