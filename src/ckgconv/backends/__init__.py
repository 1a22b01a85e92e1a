"""Acceleration: the same models on a device, by passes of their own; `accelerate` swaps them in."""
