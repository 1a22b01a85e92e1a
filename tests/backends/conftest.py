"""Every Triton kernel here runs with its memory accesses checked."""

from triton_memory import _inside

__all__ = ["_inside"]
