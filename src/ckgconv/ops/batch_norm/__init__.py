"""Weighted batch normalisation; `naive` is the specification of `analytic`, and this of `triton`."""

from ckgconv.ops.batch_norm.analytic import weighted_batch_norm
from ckgconv.ops.batch_norm.naive import affine
from ckgconv.ops.batch_norm.tracking import Running, track, tracking_batch_norm

__all__ = ["Running", "affine", "track", "tracking_batch_norm", "weighted_batch_norm"]
