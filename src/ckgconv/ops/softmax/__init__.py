"""Softmax over a support; `triton` computes that of all layers in one launch."""

import torch
from torch import Tensor

from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits
from ckgconv.ops.softmax import naive
from ckgconv.ops.softmax.naive import sparse_global_softmax, summing_softmax, support_softmax


def attention_weights(
    scores: Tensor, receiver: Tensor, rowptr: Tensor, support_size: Tensor, filled: Tensor | None
) -> Tensor:
    """|supp(i)| softmax_j(scores) [P, H] of scores [P, H]; see `summing_softmax`.

    Args:
        rowptr: [N + 1], rows of receiver i from rowptr[i] to rowptr[i + 1].
        filled: [1] integer, rows from there on are padding and get zeros; None where all are real.
    """
    if not (dispatch.uses_triton(scores) and fits(scores, *scores.shape)):
        return naive.summing_softmax(scores, receiver, support_size)
    from ckgconv.ops.softmax import triton

    if filled is None:
        return triton.summing_softmax(scores.unsqueeze(0), rowptr, support_size, filled).squeeze(0)
    real = (torch.arange(len(scores), device=scores.device) < filled).unsqueeze(-1)
    # The launches write no row of padding: chosen before, its gradient is zero, and after, its weight is.
    scores = torch.where(real, scores, 0.0)
    weights = triton.summing_softmax(scores.unsqueeze(0), rowptr, support_size, filled).squeeze(0)
    return torch.where(real, weights, 0.0)


__all__ = ["attention_weights", "sparse_global_softmax", "summing_softmax", "support_softmax"]
