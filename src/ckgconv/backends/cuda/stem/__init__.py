"""A stem: norm, projection, attributes, norm; `nn.stem` is the specification."""
