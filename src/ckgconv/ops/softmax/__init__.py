"""Softmax over a support; that of all layers at once is in `triton`."""

from ckgconv.ops.softmax.naive import sparse_global_softmax, summing_softmax, support_softmax

__all__ = ["sparse_global_softmax", "summing_softmax", "support_softmax"]
