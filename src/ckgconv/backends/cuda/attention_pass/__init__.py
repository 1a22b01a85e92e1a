"""The attention pass: attention over pairs and the state of every pair, one launch per layer and direction.

`nn.attention.PairAttention` with the projection and the norm of `nn.grit.GRITBlock` is the specification.
"""
