"""The node pass: all blocks of a network; `naive` is the specification of `triton`."""
