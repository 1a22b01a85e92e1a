"""The pairs pass: kernels of all layers; `naive` is the specification of `triton`."""
