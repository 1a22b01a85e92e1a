"""What both estimators share: parameters, validity of rows, files.

    fit        molecules and targets → a run in memory, `run_`
    predict    a row for each SMILES; NaN where it is no valid molecule, and `reasons(X)` says why
    save       a run folder with estimator.json beside: no pickle, no code

Legend: M rows, T outputs.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import with_config
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from ckgconv.checks import InputError, check_path, require, shown
from ckgconv.engine.opened import open_network
from ckgconv.engine.predict_molecules import predict_smiles, read_for
from ckgconv.engine.run import Run
from ckgconv.estimators.fitting import Targets, fitted_run, tell_invalid
from ckgconv.estimators.inputs import feature_name, smiles_of, weights_of
from ckgconv.estimators.kept import run_bytes, run_of_bytes, write_run
from ckgconv.files import read_text, valid_json, write_text
from ckgconv.recipe.format import FORMAT, MOST_SETTINGS, group_of
from ckgconv.recipe.values import KEPT, read

FILE = "estimator.json"


@with_config(KEPT)
@dataclass(frozen=True, kw_only=True)
class SavedEstimator:
    """estimator.json."""

    estimator: str  # the name of its class
    parameters: dict[str, Any]
    outputs: int
    flat: bool
    feature_names: tuple[str, ...]


class MoleculeEstimator(BaseEstimator):  # type: ignore[misc]
    """A network of molecules with the interface of scikit-learn.

    Parameters that are None have the value of a training from a table. A row whose SMILES is invalid is left out of
    `fit` with a warning that names it; its prediction is NaN.

    Args:
        width, blocks: size of the network.
        support: "global", or a number of hops.
        dropout: on the kernels.
        epochs, batch_size, learning_rate, weight_decay: length and steps of training.
        patience: stop after this many epochs without a better validation metric.
        init: a run's folder, or a trained network by name, whose weights to begin with.
        descriptors: whether the network reads RDKit's descriptors beside each molecule, as in a table.
        loss, metric: by name, such as "huber" and "rmse".
        settings: any other values of the recipe by their paths, such as {"model.steps": 16}.
        validation_fraction: share of the rows that chooses the epoch.
        random_state: a whole number is the seed itself; None draws one.
        device: "auto", "cpu" or "cuda"; precision: "32", "tf32", "bf16" or "64".
    """

    _kept: ClassVar[type[SavedEstimator]] = SavedEstimator
    run_: Run
    n_features_in_: int
    n_outputs_: int

    def __init__(
        self,
        *,
        width: int | None = None,
        blocks: int | None = None,
        support: str | int | None = None,
        dropout: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        patience: int | None = None,
        init: str | None = None,
        descriptors: bool = True,
        loss: str | None = None,
        metric: str | None = None,
        settings: dict[str, Any] | None = None,
        validation_fraction: float = 0.1,
        random_state: Any = None,
        device: str = "auto",
        precision: str = "32",
    ) -> None:
        self.width = width
        self.blocks = blocks
        self.support = support
        self.dropout = dropout
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.patience = patience
        self.init = init
        self.descriptors = descriptors
        self.loss = loss
        self.metric = metric
        self.settings = settings
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.device = device
        self.precision = precision

    def reasons(self, X: Any) -> list[str]:
        """Why each row of X cannot be predicted; empty for the others."""
        check_is_fitted(self)
        return read_for([self.run_], smiles_of(X))[1]

    def save(self, folder: Path | str) -> None:
        """Write a run folder, which `ckgconv predict` reads too, with the parameters in estimator.json."""
        check_is_fitted(self)
        parameters = self.get_params(deep=False)
        values = {"format": FORMAT, "estimator": type(self).__name__, "parameters": parameters, **self._learned()}
        try:
            text = valid_json(values, indent=1)
        except TypeError as error:
            raise InputError(f"A parameter cannot be written as JSON ({error}): set it to a plain value.") from error
        write_run(self.run_, Path(folder))
        write_text(Path(folder) / FILE, text)

    @classmethod
    def load(cls, folder: Path | str, device: str = "auto") -> Self:
        """The estimator that `save` wrote."""
        check_path("folder", folder)
        file = Path(folder) / FILE
        text = read_text(file, f"give the folder that {cls.__name__}.save wrote.", MOST_SETTINGS)
        try:
            kept = read(group_of(text), cls._kept)
            require(kept.estimator == cls.__name__, f"it is one of a {shown(kept.estimator)[1:-1]}")
            unknown = set(kept.parameters) - set(cls._get_param_names())
            require(not unknown, f"it has an unknown parameter {shown(min(unknown, default=''))}")
            found = cls(**kept.parameters)
            found._restore(kept)
        except InputError as error:
            raise InputError(
                f"{file} cannot be used ({str(error).rstrip('.')}): give what {cls.__name__}.save wrote."
            ) from error
        found.run_ = open_network(folder, device)
        found._check_restored()
        return found

    def _learned(self) -> dict[str, Any]:
        """What `fit` learned besides the network, as JSON."""
        name = list(getattr(self, "feature_names_in_", []))
        return {"outputs": self.n_outputs_, "flat": self._flat, "feature_names": name}

    def _restore(self, kept: SavedEstimator) -> None:
        """Set what `_learned` returned."""
        self.n_outputs_, self._flat, self.n_features_in_ = kept.outputs, kept.flat, 1
        if kept.feature_names:
            self.feature_names_in_ = np.array(kept.feature_names, dtype=object)

    def _check_restored(self) -> None:
        outputs = self.run_.model.outputs
        require(outputs in self._possible_outputs(), f"{FILE} is not that of its network, which has {outputs} outputs.")

    def _possible_outputs(self) -> tuple[int, ...]:
        return (self.n_outputs_,)

    def _fit(self, X: Any, smiles: list[str], targets: Targets, sample_weight: Any, flat: bool) -> Self:
        targets = replace(targets, weight=weights_of(sample_weight, len(smiles)))
        parameters = self.get_params(deep=False)
        name = feature_name(X)
        run = fitted_run(smiles, targets, parameters)
        self.run_, self.n_features_in_, self._flat = run, 1, flat
        self.n_outputs_ = len(targets.names)
        if name is not None:
            self.feature_names_in_ = np.array([name], dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return self

    def _outcome(self, X: Any) -> NDArray[np.float64]:
        """[M, T] values or probabilities; NaN in rows without a molecule."""
        check_is_fitted(self)
        name, known = feature_name(X), getattr(self, "feature_names_in_", None)
        require(
            name is None or known is None or name == known[0],
            f"X has the column {name!r}, and the estimator was fitted on {'' if known is None else known[0]!r}: the "
            f"feature names should match those that were passed during fit.",
        )
        smiles = smiles_of(X)
        found = predict_smiles(self.run_, smiles)
        tell_invalid(found.reasons, "cannot be predicted: their predictions are NaN")
        nothing = [np.nan] * self.run_.model.outputs
        return np.array([nothing if each is None else each for each in found.values], dtype=np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "run_")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "run_" in state:
            state["run_"] = run_bytes(state["run_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "run_" in state:
            state["run_"] = run_of_bytes(state["run_"], state["device"])
        super().__setstate__(state)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array, tags.input_tags.one_d_array, tags.input_tags.string = False, True, True
        tags.target_tags.required = tags.target_tags.multi_output = True
        return tags
