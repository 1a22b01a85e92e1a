"""Softmax over a support; `triton` computes that of all layers in one launch."""

from ckgconv.ops.softmax.naive import sparse_global_softmax, summing_softmax, support_softmax

__all__ = ["sparse_global_softmax", "summing_softmax", "support_softmax"]
