"""Continuous kernel graph convolution: the operator, its pseudo-coordinates and the network."""

from typing import TYPE_CHECKING, Any

from ckgconv.checks import InputError
from ckgconv.engine.callbacks import StopTraining
from ckgconv.engine.ensemble import Ensemble, open_runs
from ckgconv.engine.folds import train_folds
from ckgconv.engine.opened import open_run
from ckgconv.engine.predict_molecules import predict_smiles
from ckgconv.engine.predict_packed import predict_packed
from ckgconv.engine.run import Run, train
from ckgconv.explanation import Explanation, explain
from ckgconv.graphs import PackedGraphs, Pairs, pack
from ckgconv.nn import CKGCN, CKGConv
from ckgconv.recipes import RECIPES, recipe
from ckgconv.tasks.given import OwnMetric
from ckgconv.uncertainty import PredictedMolecule, PredictedMolecules, Predictor

if TYPE_CHECKING:
    from ckgconv.estimators import CKGCNClassifier, CKGCNRegressor

__version__ = "0.1.0"

__all__ = [
    "CKGCN",
    "RECIPES",
    "CKGCNClassifier",
    "CKGCNRegressor",
    "CKGConv",
    "Ensemble",
    "Explanation",
    "InputError",
    "OwnMetric",
    "PackedGraphs",
    "Pairs",
    "PredictedMolecule",
    "PredictedMolecules",
    "Predictor",
    "Run",
    "StopTraining",
    "explain",
    "open_run",
    "open_runs",
    "pack",
    "predict_packed",
    "predict_smiles",
    "recipe",
    "train",
    "train_folds",
]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The estimators, imported when they are first asked for: scikit-learn takes a second."""
        if name not in ("CKGCNClassifier", "CKGCNRegressor"):
            raise AttributeError(f"module 'ckgconv' has no attribute {name!r}")
        from ckgconv import estimators

        return getattr(estimators, name)
