"""Molecules and targets → a trained run in memory: which rows are used, which of them validate, and the recipe.

A row is used where its SMILES is valid and a target is known. `validation_fraction` of these rows choose the epoch; of
classes, each keeps its share. There is no test split: scores come from `score`, or from cross-validation.

Legend: M rows, T targets.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from ckgconv.checks import InputError, require
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.data.tables import pack_molecules, read_molecules
from ckgconv.engine.run import Run, train
from ckgconv.engine.watcher import Silence
from ckgconv.recipe import DataRecipe, Recipe
from ckgconv.recipe.limits import LARGEST_SEED
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting, molecules

# Rows named in a warning.
SHOWN = 5
LEAST_ROWS = 3
# What a parameter of an estimator sets in the recipe.
PATHS = {
    "width": "model.width",
    "blocks": "model.blocks",
    "support": "model.support",
    "dropout": "model.kernel.dropout",
    "epochs": "training.epochs",
    "batch_size": "training.batch_size",
    "learning_rate": "training.learning_rate",
    "weight_decay": "training.weight_decay",
    "patience": "training.patience",
    "init": "training.init",
    "loss": "training.loss",
    "metric": "training.metric",
}


class InvalidMoleculeWarning(UserWarning):
    """Some rows have no valid molecule, and are left out or not predicted."""


@dataclass(frozen=True)
class Targets:
    """What is learned."""

    y: torch.Tensor  # [M, T] values or labels, NaN where unknown; or [M] int64 classes
    names: tuple[str, ...]
    kind: Literal["values", "labels", "classes"] = "values"
    weight: torch.Tensor | None = None  # [M] of each row in the loss; None: 1

    @property
    def known(self) -> torch.Tensor:
        """[M] whether anything of a row is known."""
        return torch.ones(len(self.y), dtype=torch.bool) if self.kind == "classes" else self.y.isfinite().any(1)


class _Warnings(Silence):
    """Sentences of a run as Python's warnings."""

    def warn(self, sentence: str) -> None:
        warnings.warn(sentence, UserWarning, stacklevel=2)


def fitted_run(smiles: Sequence[str], targets: Targets, parameters: dict[str, Any]) -> Run:
    """Train on the rows that can be used."""
    found, reasons = read_molecules(smiles, "molecule")
    tell_invalid(reasons, "are left out of training")
    known = targets.known.tolist()
    rows = [row for row, each in enumerate(found) if each is not None and known[row]]
    require(
        len(rows) >= LEAST_ROWS,
        f"X has {len(rows)} sample{'s' * (len(rows) != 1)} with a valid SMILES and a known target: give at least "
        f"{LEAST_ROWS}.",
    )
    weight = None if targets.weight is None else targets.weight[rows]
    used, seed = replace(targets, y=targets.y[rows], weight=weight), seed_of(parameters["random_state"])
    splits = validation_split(used, parameters["validation_fraction"], seed)
    used = as_labels(used, splits["val"])
    recipe = recipe_of(used, parameters)
    if used.kind == "labels" and parameters["metric"] is None and not _ranks(used.y[splits["val"]]):
        recipe = with_value(recipe, "training.metric=label_accuracy")
    kept = [each for row in rows if (each := found[row]) is not None]
    dataset = replace(pack_molecules(kept, used.y, recipe.data), target_weight=weight).subset(splits)
    with torch.random.fork_rng(devices=[]):  # training draws from torch's generator, which is the caller's
        return train(
            recipe,
            seed,
            data=dataset,
            device=parameters["device"],
            precision=parameters["precision"],
            watcher=_Warnings(),
            test=False,
        )


def seed_of(random_state: Any) -> int:
    """A whole number itself; otherwise one drawn from a generator of numpy, None: its global one."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        seed = int(random_state)
        require(0 <= seed <= LARGEST_SEED, f"random_state is {seed}: give 0 … {LARGEST_SEED}, or None.")
        return seed
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(LARGEST_SEED))


def validation_split(targets: Targets, fraction: float, seed: int) -> dict[str, torch.Tensor]:
    """Numbers of the rows that train and that validate; of classes, each keeps its share where it has enough."""
    numeric = isinstance(fraction, int | float) and not isinstance(fraction, bool)
    require(numeric and 0 < fraction < 1, f"validation_fraction is {fraction!r}: give a number between 0 and 1.")
    order = torch.randperm(len(targets.y), generator=torch.Generator().manual_seed(seed))
    groups = [order]
    if targets.kind == "classes":
        groups = [order[targets.y[order] == number] for number in targets.y.unique()]
    counts = [min(max(1, round(fraction * len(group))), len(group) - 1) for group in groups]
    if not any(counts):
        groups, counts = [order], [1]
    validated = torch.cat([group[:count] for group, count in zip(groups, counts, strict=True)])
    trained = torch.cat([group[count:] for group, count in zip(groups, counts, strict=True)])
    return {"train": trained, "val": validated, "test": trained[:0]}


def as_labels(targets: Targets, validated: torch.Tensor) -> Targets:
    """Two classes as one label, as in a table of molecules, where the validation rows define its AUROC."""
    if targets.kind != "classes" or int(targets.y.max()) > 1 or len(targets.y[validated].unique()) < 2:
        return targets
    return replace(targets, y=targets.y.float().unsqueeze(-1), kind="labels")


def _ranks(labels: torch.Tensor) -> bool:
    """Whether labels [M, T] define an AUROC: a column of them has zeros and ones."""
    return bool(((labels == 0).any(0) & (labels == 1).any(0)).any())


def recipe_of(targets: Targets, parameters: dict[str, Any]) -> Recipe:
    """The recipe of a table of molecules, changed by the parameters that are not None, then by `settings`."""
    read = parameters["descriptors"]
    require(isinstance(read, bool), f"descriptors is {read!r}: give True or False.")
    data = DataRecipe("molecules", targets=targets.names, descriptors="rdkit" if read else "none")
    count = len(DESCRIPTORS) if read else 0
    recipe = replace(molecules(data, targets.kind == "labels", len(targets.y), read=count), name="estimator")
    if targets.kind == "classes":
        for setting in ("training.loss=cross_entropy", "training.metric=accuracy", "training.scale_targets=false"):
            recipe = with_value(recipe, setting)
        recipe = with_value(recipe, f"model.head.outputs={int(targets.y.max()) + 1}")
    for name, path in PATHS.items():
        if parameters[name] is not None:
            recipe = with_value(recipe, _assignment(path, parameters[name]))
    training = recipe.training
    # A learning rate that never leaves its warm-up learns next to nothing.
    training = replace(training, warmup_epochs=min(training.warmup_epochs, training.epochs // 4))
    recipe = replace(recipe, training=training)
    settings = parameters["settings"] or {}
    require(isinstance(settings, dict), f"settings is a {type(settings).__name__}: give {{'model.width': 32}}.")
    for path, value in settings.items():
        recipe = with_value(recipe, _assignment(path, value))
    return fitting(recipe)


def _assignment(path: str, value: Any) -> str:
    """A value as `with_value` reads it; searches draw numbers of numpy."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        return f"{path}={plain if isinstance(plain, str) else json.dumps(plain)}"
    except TypeError as error:
        raise InputError(f"{path} is a {type(value).__name__}: give a number, a text, a list or None.") from error


def tell_invalid(reasons: Sequence[str], what: str) -> None:
    """Warn of rows without a molecule, naming the first of them."""
    wrong = [(row, reason) for row, reason in enumerate(reasons) if reason]
    if wrong:
        shown = " ".join(f"Row {row}: {reason}" for row, reason in wrong[:SHOWN])
        more = f" And {len(wrong) - SHOWN:,} others." if len(wrong) > SHOWN else ""
        sentence = f"{len(wrong):,} of {len(reasons):,} rows of X {what}. {shown}{more}"
        warnings.warn(sentence, InvalidMoleculeWarning, stacklevel=4)
