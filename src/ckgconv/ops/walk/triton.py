"""Random walks of a batch of graphs, rows of each graph in tiles: a tile of P_k needs only the same rows of P_{k-1}.

    P_k[rows] = P_{k-1}[rows] M

So all powers come from one launch, and a graph costs what its own size asks, not that of the largest.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import torch
import triton
import triton.language as tl
from torch import Tensor

ROWS = 16
TILE = 64


@triton.jit
def walk_powers(
    matrix,
    scratch,
    sizes,
    starts,
    out,
    largest,
    plane,
    steps,
    PRECISION: tl.constexpr,
    ROWS: tl.constexpr,
    TILE: tl.constexpr,
):
    graph, block = tl.program_id(0), tl.program_id(1)
    size = tl.load(sizes + graph).to(tl.int32)
    start = tl.load(starts + graph).to(tl.int32)
    if block * ROWS < size:
        row = block * ROWS + tl.arange(0, ROWS)
        real = row < size
        corner = graph.to(tl.int64) * largest * largest
        channels = steps + 1
        for left in range(0, size, TILE):
            column = left + tl.arange(0, TILE)
            inside = real[:, None] & (column < size)[None, :]
            values = tl.where(row[:, None] == column[None, :], 1.0, 0.0)
            tl.store(scratch + corner + row[:, None] * largest + column[None, :], values, mask=inside)
            tl.store(out + (start + row[:, None] * size + column[None, :]) * channels, values, mask=inside)
        tl.debug_barrier()
        for step in range(1, steps + 1):
            before = scratch + ((step - 1) % 2) * plane + corner
            after = scratch + (step % 2) * plane + corner
            for left in range(0, size, TILE):
                column = left + tl.arange(0, TILE)
                inside = real[:, None] & (column < size)[None, :]
                values = tl.zeros([ROWS, TILE], tl.float32)
                for top in range(0, size, TILE):
                    middle = top + tl.arange(0, TILE)
                    there = real[:, None] & (middle < size)[None, :]
                    power = tl.load(before + row[:, None] * largest + middle[None, :], mask=there, other=0.0)
                    there = (middle < size)[:, None] & (column < size)[None, :]
                    walk = tl.load(matrix + corner + middle[:, None] * largest + column[None, :], mask=there, other=0.0)
                    values = tl.dot(power, walk, values, input_precision=PRECISION)
                tl.store(after + row[:, None] * largest + column[None, :], values, mask=inside)
                place = (start + row[:, None] * size + column[None, :]) * channels + step
                tl.store(out + place, values, mask=inside)
            tl.debug_barrier()


def walk_coordinates(matrix: Tensor, sizes: Tensor, starts: Tensor, steps: int, rows: int) -> Tensor:
    """[rows, steps + 1] I, M, …, M^steps at every pair; see `naive`."""
    graphs, largest, _ = matrix.shape
    out = torch.zeros(rows, steps + 1, device=matrix.device)
    scratch = torch.empty(2, graphs, largest, largest, device=matrix.device)
    # Plain products where a tile holds the whole graph; larger ones need the matrix units.
    precision = "ieee" if largest <= TILE else "tf32x3"
    walk_powers[(graphs, -(-largest // ROWS))](
        matrix.float().contiguous(),
        scratch,
        sizes,
        starts,
        out,
        largest,
        scratch.stride(0),
        steps,
        PRECISION=precision,
        ROWS=ROWS,
        TILE=TILE,
    )
    return out
