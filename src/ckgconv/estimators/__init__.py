"""Estimators of scikit-learn over SMILES: networks with `fit` and `predict`, for its pipelines and searches."""

from ckgconv.estimators.classifier import CKGCNClassifier
from ckgconv.estimators.regressor import CKGCNRegressor

__all__ = ["CKGCNClassifier", "CKGCNRegressor"]
