"""Draws without replacement from the rows of a support, all rows at once.

Each row gives min(n, f) of its n entries, every set of that size with equal probability (Floyd's algorithm): the mean
over the drawn entries is an unbiased estimate of the mean over the row.

Legend: R rows, f entries drawn of each, P entries drawn in all.
"""

import torch
from torch import Tensor


def draw_entries(sizes: Tensor, fanout: int) -> tuple[Tensor, Tensor]:
    """The row, and the offset within it, of each drawn entry [P], ascending; `sizes` [R] are those of the rows.

    Random numbers come from torch's generator on the device of `sizes`.
    """
    if sizes.shape[0] == 0:
        return sizes, sizes
    fanout = min(fanout, int(sizes.max()))
    place = torch.arange(fanout, device=sizes.device)
    offset = place.expand(sizes.shape[0], -1).clone()
    large = (sizes > fanout).nonzero().squeeze(-1)
    offset[large] = _floyd(sizes[large], fanout).sort(dim=1).values
    taken = place < sizes.unsqueeze(-1)
    row = torch.arange(sizes.shape[0], device=sizes.device).unsqueeze(-1).expand_as(offset)
    return row[taken], offset[taken]


def _floyd(sizes: Tensor, fanout: int) -> Tensor:
    """[R, f] distinct offsets below the sizes [R], all of which exceed f."""
    random = torch.rand(sizes.shape[0], fanout, dtype=torch.float64, device=sizes.device)
    chosen = torch.empty(sizes.shape[0], fanout, dtype=torch.int64, device=sizes.device)
    for turn in range(fanout):
        last = sizes - fanout + turn  # the largest offset that this turn may choose
        drawn = (random[:, turn] * (last + 1)).long()
        before = (chosen[:, :turn] == drawn.unsqueeze(-1)).any(1)
        chosen[:, turn] = torch.where(before, last, drawn)
    return chosen
