"""A kernel that writes down the dropout mask which the others only use."""

import triton
import triton.language as tl

from ckgconv.ops.tiles import kept


# A seed of 1 would be a constant of the compiler, and no tensor.
@triton.jit(do_not_specialize=["seed"])
def write_kept(mask, seed, rows, columns, level, factor, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    column = tl.arange(0, COLUMNS)
    keep = kept(seed, row, level, ROWS, COLUMNS)
    inside = (row < rows)[:, None] & (column < columns)[None, :]
    tl.store(mask + row[:, None] * columns + column[None, :], tl.where(keep, factor, 0.0), mask=inside)
