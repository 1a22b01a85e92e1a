"""Continuous kernel graph convolution: the operator, its pseudo-coordinates and the network."""

from ckgconv.checks import InputError
from ckgconv.engine.predict import predict_smiles
from ckgconv.engine.predict_packed import predict_packed
from ckgconv.engine.run import Run, open_run, train
from ckgconv.graphs import PackedGraphs, Pairs, pack
from ckgconv.nn import CKGCN, CKGConv
from ckgconv.recipes import RECIPES, recipe

__version__ = "0.1.0"

__all__ = [
    "CKGCN",
    "RECIPES",
    "CKGConv",
    "InputError",
    "PackedGraphs",
    "Pairs",
    "Run",
    "open_run",
    "pack",
    "predict_packed",
    "predict_smiles",
    "recipe",
    "train",
]
