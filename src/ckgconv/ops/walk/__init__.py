"""Random walks of a batch of graphs at every pair: one kernel on a GPU, batched products elsewhere."""

from torch import Tensor

from ckgconv.ops.beside import until_room
from ckgconv.ops.fused import fused
from ckgconv.ops.walk import naive


def walk_coordinates(matrix: Tensor, sizes: Tensor, starts: Tensor, steps: int, rows: int) -> Tensor:
    """[rows, steps + 1] I, M, …, M^steps at every pair; see `naive`."""
    if fused(matrix):
        from ckgconv.ops.walk import triton

        until_room()
        return triton.walk_coordinates(matrix, sizes, starts, steps, rows)
    return naive.walk_coordinates(matrix, sizes, starts, steps, rows)


__all__ = ["walk_coordinates"]
