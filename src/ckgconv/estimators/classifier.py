"""Classification of molecules with the interface of scikit-learn.

    y [M]       one class per molecule, of any labels: predict [M], predict_proba [M, K] in the order of `classes_`
    y [M, T]    labels 0 or 1, NaN where unknown: predict [M, T], predict_proba [M, T], the probability of 1

Legend: M rows, K classes, T labels.
"""

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import FailFast, Field
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from ckgconv.checks import InputError, require
from ckgconv.estimators.base import MoleculeEstimator, SavedEstimator
from ckgconv.estimators.fitting import Targets
from ckgconv.estimators.inputs import smiles_of, target_names, targets_of, values_of

# Classes that JSON has: of numpy's kinds, whole numbers, floats, truth values and text.
KINDS = {"i": np.int64, "u": np.int64, "f": np.float64, "b": np.bool_, "U": np.str_, "O": np.object_}


@dataclass(frozen=True, kw_only=True)
class SavedClassifier(SavedEstimator):
    """estimator.json, with the classes."""

    classes: Annotated[tuple[int | float | bool | str, ...], Field(min_length=2), FailFast()]
    classes_kind: Literal["i", "u", "f", "b", "U", "O"]


class CKGCNClassifier(ClassifierMixin, MoleculeEstimator):  # type: ignore[misc]
    """A network that predicts classes or labels of molecules; `MoleculeEstimator` lists its parameters.

    Example:
        >>> model = CKGCNClassifier(epochs=50, random_state=0).fit(["CCO", "CCN", "CO", "CN"], ["O", "N", "O", "N"])
        >>> model.predict_proba(["CCCO"]).shape
        (1, 2)
    """

    _kept = SavedClassifier
    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on SMILES [M] and classes [M], or labels [M, T]; weights [M] are those of the rows in the loss."""
        smiles = smiles_of(X)
        array = targets_of(y, len(smiles))
        if array.ndim == 2 and array.shape[1] > 1:
            targets = self._labels(y, values_of(array))
            return self._fit(X, smiles, targets, sample_weight, flat=False)
        for row, each in enumerate(array.reshape(-1).tolist()):
            defined = each is not None and not (isinstance(each, float) and not math.isfinite(each))
            require(defined, f"y contains {each}, which is no class, in row {row}: leave such rows out.")
        check_classification_targets(array)
        try:
            classes, numbers = np.unique(array.reshape(-1), return_inverse=True)
        except TypeError as error:
            raise InputError(
                f"y mixes classes of different types ({error}): give numbers only, or text only."
            ) from error
        require(len(classes) > 1, "y has one class only: give molecules of at least two classes.")
        targets = Targets(torch.from_numpy(numbers.reshape(-1)).long(), target_names(y, 1), "classes")
        self.classes_ = classes
        return self._fit(X, smiles, targets, sample_weight, flat=True)

    def _labels(self, y: Any, labels: NDArray[np.float64]) -> Targets:
        known = np.isfinite(labels)
        wrong = labels[known & (labels != 0) & (labels != 1)]
        require(
            not len(wrong),
            f"y has several columns and contains {wrong[0] if len(wrong) else ''}: labels are 0 or 1, NaN where "
            f"unknown; give classes as one column.",
        )
        self.classes_ = np.arange(labels.shape[1])
        return Targets(torch.from_numpy(labels).float(), target_names(y, labels.shape[1]), "labels")

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """[M, K] of each class, or [M, T] of each label being 1; NaN in rows without a valid molecule (`reasons`)."""
        found = self._outcome(X)
        return np.hstack([1 - found, found]) if self._flat and found.shape[1] == 1 else found

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class [M], or labels [M, T].

        Rows without a valid molecule are NaN (`reasons`); the array is then of dtype object, unless classes are floats.
        """
        probabilities = self.predict_proba(X)
        invalid = np.isnan(probabilities).any(axis=1)
        if self._flat:
            found = self.classes_[np.nan_to_num(probabilities).argmax(axis=1)]
        else:
            found = (np.nan_to_num(probabilities) > 0.5).astype(np.int64)
        if invalid.any():
            found = found if found.dtype.kind == "f" else found.astype(object)
            found[invalid] = np.nan
        return found

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy over the rows with a prediction; of labels, over all that are known."""
        predicted = self.predict(X)
        wanted = targets_of(y, len(predicted))
        weight = np.ones(len(predicted)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if self._flat:
            known = predicted == predicted
            return float(np.average((predicted == wanted.reshape(-1))[known], weights=weight[known]))
        labels = values_of(wanted)
        known = np.isfinite(labels) & (predicted == predicted)
        weights = np.broadcast_to(weight[:, None], labels.shape)
        return float(np.average((predicted == labels)[known], weights=weights[known]))

    def _learned(self) -> dict[str, Any]:
        return {**super()._learned(), "classes": self.classes_.tolist(), "classes_kind": self.classes_.dtype.kind}

    def _restore(self, kept: SavedEstimator) -> None:
        super()._restore(kept)
        assert isinstance(kept, SavedClassifier)
        try:
            self.classes_ = np.array(kept.classes, dtype=KINDS[kept.classes_kind])
        except (ValueError, OverflowError) as error:
            raise InputError(f"its classes are not of their kind ({error})") from error

    def _possible_outputs(self) -> tuple[int, ...]:
        if not self._flat:
            return (self.n_outputs_,)
        return (len(self.classes_), 1) if len(self.classes_) == 2 else (len(self.classes_),)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        return tags
