"""Models as equations, in plain torch: nothing here depends on the device."""

from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.convolution import KernelConvolution
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.head import make_head
from ckgconv.nn.kernel import Kernel, KernelValues
from ckgconv.nn.layer import CKGConv
from ckgconv.nn.norm import WeightedBatchNorm

__all__ = [
    "CKGCN",
    "CKGConv",
    "GraphModel",
    "Kernel",
    "KernelConvolution",
    "KernelValues",
    "WeightedBatchNorm",
    "make_head",
]
