"""Modules with explicit arguments."""

from ckgconv.nn.ckgcn import CKGCN
from ckgconv.nn.conv import CKGConv, KernelConvolution
from ckgconv.nn.kernel import Kernel, KernelValues
from ckgconv.nn.norm import WeightedBatchNorm

__all__ = ["CKGCN", "CKGConv", "Kernel", "KernelConvolution", "KernelValues", "WeightedBatchNorm"]
