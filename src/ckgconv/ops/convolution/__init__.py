"""Scaled depthwise convolution over a support."""

from ckgconv.ops.convolution.naive import scaled_convolution, sparse_global_convolution

__all__ = ["scaled_convolution", "sparse_global_convolution"]
