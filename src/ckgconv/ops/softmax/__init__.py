"""Softmax over a support."""

from ckgconv.ops.softmax.naive import sparse_global_softmax, support_softmax

__all__ = ["sparse_global_softmax", "support_softmax"]
