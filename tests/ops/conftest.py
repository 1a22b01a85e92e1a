"""Every Triton kernel here runs with its memory accesses checked, over new memory that is filled."""

from triton_memory import _filled, _inside

__all__ = ["_filled", "_inside"]
