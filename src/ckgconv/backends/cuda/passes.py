"""The modules of `nn` that have fused passes on a CUDA GPU, and the passes."""

from torch import nn

from ckgconv.backends.cuda.ckgcn import FusedCKGCN
from ckgconv.backends.cuda.grit import FusedGRIT
from ckgconv.backends.cuda.head.modules import FusedPyramidHead, FusedReLUPyramidHead
from ckgconv.backends.cuda.hybrid import FusedHybrid
from ckgconv.backends.cuda.kernel import FusedKernel
from ckgconv.backends.cuda.message_passing import (
    FusedGatedGCNLayer,
    FusedGCNEdgesLayer,
    FusedGINELayer,
    FusedMessagePassing,
)
from ckgconv.backends.cuda.stem.modules import FusedNodeStem, FusedPairStem
from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.gated_gcn import GatedGCNLayer
from ckgconv.nn.grit import GRIT
from ckgconv.nn.head import PyramidHead, ReLUPyramidHead
from ckgconv.nn.hybrid import Hybrid
from ckgconv.nn.kernel import Kernel
from ckgconv.nn.message_layers import GCNEdgesLayer, GINELayer
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.nn.stem import NodeStem, PairStem

PASSES: dict[type[nn.Module], type[nn.Module]] = {
    CKGCN: FusedCKGCN,
    GRIT: FusedGRIT,
    GCNEdgesLayer: FusedGCNEdgesLayer,
    GINELayer: FusedGINELayer,
    GatedGCNLayer: FusedGatedGCNLayer,
    Hybrid: FusedHybrid,
    Kernel: FusedKernel,
    MessagePassing: FusedMessagePassing,
    NodeStem: FusedNodeStem,
    PairStem: FusedPairStem,
    PyramidHead: FusedPyramidHead,
    ReLUPyramidHead: FusedReLUPyramidHead,
}
