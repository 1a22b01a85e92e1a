"""The pyramid head on few rows as one launch; `naive` is the specification of `triton`."""
