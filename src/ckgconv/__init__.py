"""Continuous kernel graph convolution: the operator, its pseudo-coordinates and the network."""

from ckgconv.checks import InputError
from ckgconv.graphs import PackedGraphs, Pairs, pack
from ckgconv.nn import CKGCN, CKGConv
from ckgconv.recipes import RECIPES, recipe

__version__ = "0.1.0"

__all__ = ["CKGCN", "RECIPES", "CKGConv", "InputError", "PackedGraphs", "Pairs", "pack", "recipe"]
