"""The node pass: all blocks of a network in a few launches each; `nn.block` is the specification."""
