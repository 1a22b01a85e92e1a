"""Weighted batch statistics."""

from ckgconv.ops.batch_norm.naive import affine, standardise, weighted_moments

__all__ = ["affine", "standardise", "weighted_moments"]
