"""Regression on molecules with the interface of scikit-learn: SMILES [M], y [M] or [M, T] → values of that shape."""

from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.metrics import r2_score

from ckgconv.checks import require
from ckgconv.estimators.base import MoleculeEstimator
from ckgconv.estimators.fitting import Targets
from ckgconv.estimators.inputs import smiles_of, target_names, targets_of, values_of


class CKGCNRegressor(RegressorMixin, MoleculeEstimator):  # type: ignore[misc]
    """A network that predicts values of molecules; `MoleculeEstimator` lists its parameters.

    A target of NaN is unknown and does not count. Predictions are in the units of y.

    Example:
        >>> model = CKGCNRegressor(epochs=50, random_state=0).fit(["CCO", "CCN", "CCC", "CCCl"], [0.1, 0.2, 0.9, 1.1])
        >>> model.predict("CCBr").shape
        (1,)
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on SMILES [M] and values [M] or [M, T]; weights [M] are those of the rows in the loss."""
        smiles = smiles_of(X)
        array = targets_of(y, len(smiles))
        values = values_of(array).reshape(len(smiles), -1)
        for column, each in enumerate(values.T):
            known = bool(np.isfinite(each).any())
            require(known, f"Every value of column {column} of y is NaN: leave that target out.")
        targets = Targets(torch.from_numpy(values).float(), target_names(y, values.shape[1]))
        return self._fit(X, smiles, targets, sample_weight, flat=array.ndim == 1)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Values [M], or [M, T] where y had columns; NaN in rows without a valid molecule (`reasons`)."""
        values = self._outcome(X)
        return values[:, 0] if self._flat else values

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R² over the rows with a prediction and a known target, the mean over the columns."""
        predicted = self._outcome(X)
        wanted = values_of(targets_of(y, len(predicted))).reshape(len(predicted), -1)
        weight = None if sample_weight is None else np.asarray(sample_weight)
        scores = []
        for value, target in zip(predicted.T, wanted.T, strict=True):
            known = np.isfinite(value) & np.isfinite(target)
            scores.append(
                r2_score(target[known], value[known], sample_weight=None if weight is None else weight[known])
            )
        return float(np.mean(scores))
