"""Random walks of a batch of graphs at every pair: one launch on a GPU, batched products elsewhere."""

from torch import Tensor

from ckgconv.backends.cuda.walk import naive
from ckgconv.ops import dispatch


def walk_coordinates(matrix: Tensor, sizes: Tensor, starts: Tensor, steps: int, rows: int) -> Tensor:
    """[rows, steps + 1] I, M, …, M^steps at every pair; see `naive`."""
    if dispatch.uses_triton(matrix):
        from ckgconv.backends.cuda.walk import triton

        return triton.walk_coordinates(matrix, sizes, starts, steps, rows)
    return naive.walk_coordinates(matrix, sizes, starts, steps, rows)


__all__ = ["walk_coordinates"]
