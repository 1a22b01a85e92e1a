"""The pyramid head on few rows as one launch; `nn.head` is the specification."""
