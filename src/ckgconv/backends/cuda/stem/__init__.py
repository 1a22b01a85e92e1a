"""A stem: norm, projection, attributes, norm; `naive` is the specification of `triton`."""
