"""Weighted batch normalisation; `naive` is the specification of `analytic`."""

from ckgconv.ops.batch_norm.analytic import weighted_batch_norm
from ckgconv.ops.batch_norm.naive import affine

__all__ = ["affine", "weighted_batch_norm"]
