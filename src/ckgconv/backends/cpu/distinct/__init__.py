"""Distinct rows of a matrix; `naive` is the specification of `hashed`."""

from ckgconv.backends.cpu.distinct.hashed import distinct_rows

__all__ = ["distinct_rows"]
