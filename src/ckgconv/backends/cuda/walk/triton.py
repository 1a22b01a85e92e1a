"""Random walks of a batch of graphs in tiles of rows: a tile of P_k needs only the same rows of P_{k-1}.

    P_k[rows] = P_{k-1}[rows] M

So one launch computes all powers, and the cost of a graph depends on its own size, not on that of the largest. Where
the largest fits into one tile, M is read once and P stays in registers.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.ops.dispatch import shared_memory
from ckgconv.ops.launch import tile_width

ROWS = 16
TILE = 64
WHOLE, WHOLE_BYTES = 128, 147_456  # nodes of the largest graph that one tile holds, and its shared memory as compiled


@triton.jit
def whole_walk_powers(
    matrix, sizes, starts, out, largest, steps, PRECISION: tl.constexpr, ROWS: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Some rows of all powers of a graph of at most TILE nodes."""
    graph, block = tl.program_id(0), tl.program_id(1)
    size = tl.load(sizes + graph).to(tl.int32)
    start = tl.load(starts + graph).to(tl.int64)
    if block * ROWS < size:
        row, column = block * ROWS + tl.arange(0, ROWS), tl.arange(0, TILE)
        inside = (row < size)[:, None] & (column < size)[None, :]
        there = (column < size)[:, None] & (column < size)[None, :]
        corner = graph.to(tl.int64) * largest * largest
        walk = tl.load(matrix + corner + column[:, None] * largest + column[None, :], mask=there, other=0.0)
        power = tl.where(row[:, None] == column[None, :], 1.0, 0.0)
        place = out + (start + row[:, None] * size + column[None, :]) * (steps + 1)
        tl.store(place, power, mask=inside)
        for step in range(1, steps + 1):
            power = tl.dot(power, walk, input_precision=PRECISION)
            tl.store(place + step, power, mask=inside)


@triton.jit
def walk_powers(
    matrix, scratch, sizes, starts, out, largest, plane, steps, PRECISION: tl.constexpr, ROWS: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Some rows of all powers of a graph of any size; two planes of `scratch` hold the last power and the next."""
    graph, block = tl.program_id(0), tl.program_id(1)
    size = tl.load(sizes + graph).to(tl.int32)
    start = tl.load(starts + graph).to(tl.int64)
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
    out = torch.zeros(rows, steps + 1, dtype=torch.float32, device=matrix.device)
    grid = (graphs, -(-largest // ROWS))
    matrix = matrix.float().contiguous()
    if largest <= TILE or (largest <= WHOLE and shared_memory(matrix) >= WHOLE_BYTES):
        tile = tile_width(largest)
        # FP32 products in a small tile; larger ones need the matrix units.
        options = {"PRECISION": "ieee" if tile <= TILE else "tf32x3", "num_warps": 4 if tile <= TILE else 8}
        whole_walk_powers[grid](matrix, sizes, starts, out, largest, steps, ROWS=ROWS, TILE=tile, **options)
        return out
    scratch = torch.empty(2, graphs, largest, largest, dtype=torch.float32, device=matrix.device)
    walk_powers[grid](
        matrix, scratch, sizes, starts, out, largest, scratch.stride(0), steps, PRECISION="tf32x3", ROWS=ROWS,
        TILE=TILE,
    )  # fmt: skip
    return out
