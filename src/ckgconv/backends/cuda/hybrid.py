"""The hybrid on a CUDA GPU: kernels and stems by fused passes, blocks as the plain module in float32.

Nodes are a hundredth of the data: rounding them under autocast gains nothing, and every cast is a launch.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ckgconv.backends.cuda.ckgcn import sorted_by_sender
from ckgconv.graphs import GraphBatch
from ckgconv.nn.hybrid import Hybrid
from ckgconv.ops import dispatch
from ckgconv.ops.precision import without_autocast


class FusedHybrid(Hybrid):
    """`Hybrid` whose blocks stay float32 under autocast, while kernels are stored in 16 bits."""

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        if not dispatch.uses_triton(batch.degree) or self.dtype != torch.float32:
            return super().node_states(batch)
        # Sorted once for all blocks, whose convolutions sum over both orders.
        pairs = sorted_by_sender(batch.pairs)
        batch = replace(batch, pairs=pairs)
        kernels = tuple(self.kernel(self._pair_features(batch), pairs))
        h = self.input_states(batch)
        with without_autocast(h):
            for block, psi in zip(self.blocks, kernels, strict=True):
                h = block(h, psi, pairs, batch.degree, batch.node_weight, block.drop_path(batch))
        return h
