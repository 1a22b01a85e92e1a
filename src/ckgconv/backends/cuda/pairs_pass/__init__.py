"""The pairs pass: the kernels of all layers, one launch per stage; `nn.kernel` is the specification."""
