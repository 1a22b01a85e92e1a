"""AdamW with a clipped gradient norm on one flat vector; `naive` is the specification of `launch`."""
