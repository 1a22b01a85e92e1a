"""The record of a run: what was trained, on which device, and every epoch.

record.json holds all of it, metrics.csv the epochs as a table. Records of other versions can be read: unknown keys are
ignored, and the recipe stays as it was written. Files of a later format, whose keys mean something else, are refused;
one without a `format` has format 1. A number that is undefined, such as a loss after divergence, is NaN
here and null in record.json.
"""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import FailFast, Field, with_config

from ckgconv.checks import InputError, check_group, require
from ckgconv.engine.data_identity import DataIdentity
from ckgconv.engine.machine import commit, device_name, versions
from ckgconv.files import parse_json, read_text, valid_json, write_text, write_whole
from ckgconv.recipe import Recipe
from ckgconv.recipe.format import FORMAT, check_format
from ckgconv.recipe.values import KEPT, Number, read
from ckgconv.recipes import to_json

# Packages, splits or metrics of a record, far beyond any use.
MOST_NAMES = 1000
Metrics = Annotated[dict[str, Annotated[dict[str, Number], Field(max_length=MOST_NAMES)]], Field(max_length=MOST_NAMES)]


@dataclass(frozen=True)
class Epoch:
    """One epoch of training, and the validation after it."""

    epoch: int  # from 0
    train_loss: Number
    val: Number  # the recipe's metric on the validation split
    lr: Number
    seconds: Number  # of training, without validation
    val_loss: Number | None = None  # the loss on the validation split; None: none is compared by it

    def to_json(self) -> dict[str, Any]:
        """Without `val_loss` where it is not computed, as in records of earlier versions."""
        return _known(vars(self), "val_loss")


@dataclass(frozen=True)
class Best:
    """The best validation epoch; `test` is None until it is tested, and without test targets."""

    epoch: int
    val: Number  # of this epoch alone
    test: Number | None = None
    smoothed: Number | None = None  # mean of the last validations, by which the epoch was chosen; None: by `val`
    loss: Number | None = None  # validation loss, or its mean, by which it was chosen (`selection`); None: by none

    @property
    def score(self) -> float:
        """The metric that epochs are compared by."""
        return self.val if self.smoothed is None else self.smoothed

    def to_json(self) -> dict[str, Any]:
        """Without `smoothed` and `loss` where they chose nothing, as in records of earlier versions."""
        return _known(vars(self), "smoothed", "loss")


@dataclass(frozen=True)
class Ending:
    """Metrics of weights that a run ends with, chosen by nothing; `test` is None until the run is tested."""

    epochs: int  # whose weights these are the mean of
    val: Number
    test: Number | None = None
    metrics: Metrics | None = None  # by split, those asked for besides the metric

    def to_json(self) -> dict[str, Any]:
        """Without `metrics` where none are asked for, as in records of earlier versions."""
        return _known(vars(self), "metrics")


@dataclass(frozen=True)
class Named:
    """The part of a recipe that a record needs of its data."""

    name: str


@dataclass(frozen=True)
class Lengths:
    """The part that it needs of the training."""

    epochs: int | None = None
    patience: int | None = None


@with_config(KEPT)
@dataclass(frozen=True)
class WrittenRecipe:
    """What a record needs of its recipe, which another version may have written."""

    name: str
    data: Named
    training: Lengths = Lengths()


@with_config(KEPT)
@dataclass(kw_only=True)
class Record:
    """A run so far; the fields from `epochs` on change as it proceeds."""

    recipe: dict[str, Any]  # as in recipe.json, with the fields of the version that wrote it
    seed: int
    commit: str | None = None
    versions: Annotated[dict[str, str], Field(max_length=MOST_NAMES)] = field(default_factory=dict)
    device: str = "unknown"
    precision: str = "32"
    parameters: int = 0
    metric: str
    epochs: Annotated[list[Epoch], FailFast()] = field(default_factory=list)
    best: Best | None = None
    last: Ending | None = None  # the weights after the last epoch; None before it
    averaged: Ending | None = None  # the mean over the last quarter of the epochs; None before the last, or without one
    wall_s: Number = 0.0
    peak_memory_mb: int = 0
    at_once: int | None = None  # how many runs shared the device; None: unknown
    data: DataIdentity | None = None  # None in records of earlier versions
    metrics: Metrics | None = None  # by split, of the best epoch: those asked for besides `metric`

    @property
    def recipe_name(self) -> str:
        return str(self.recipe["name"])

    @property
    def data_name(self) -> str:
        return str(self.recipe["data"]["name"])

    @property
    def test(self) -> float | None:
        """Test metric of the best validation epoch; None before it is tested."""
        return None if self.best is None else self.best.test

    @property
    def ended(self) -> bool:
        """Whether no epoch is left to train; one that a callback stopped can be trained further."""
        training = self.recipe.get("training", {})
        return len(self.epochs) >= training.get("epochs", math.inf) or self.out_of_patience(training.get("patience"))

    def out_of_patience(self, patience: int | None) -> bool:
        """Whether the last `patience` epochs were no better than one before them."""
        return patience is not None and self.best is not None and self.epochs[-1].epoch - self.best.epoch >= patience

    def to_json(self) -> dict[str, Any]:
        """The object that `from_json` reads."""
        values = dict(vars(self))
        values["epochs"] = [epoch.to_json() for epoch in self.epochs]
        values["best"] = None if self.best is None else self.best.to_json()
        for name in ("last", "averaged"):
            ending = getattr(self, name)
            values[name] = None if ending is None else ending.to_json()
        values["data"] = None if self.data is None else dict(vars(self.data))
        # Absent where unknown, as in records of earlier versions.
        return _known(values, "last", "averaged", "at_once", "data", "metrics")

    @classmethod
    def from_json(cls, values: Any, where: str = "The object") -> "Record":
        """A record from what `json.loads` returns; `where` names its file in error messages."""
        try:
            return cls._read(values)
        except InputError as error:
            raise InputError(
                f"{where} is not the record of a run ({error}): give the folder that `ckgconv train` wrote."
            ) from error

    @classmethod
    def _read(cls, values: Any) -> "Record":
        check_group("it", values)
        check_format(values.get("format", FORMAT), "it")
        recipe = values.get("recipe", {})
        read({"data": {}, **recipe} if isinstance(recipe, dict) else recipe, WrittenRecipe, "recipe")
        record = read(values, cls)
        require(record.best is None or bool(record.epochs), "it has a best epoch, but no epochs")
        return record


def new_record(
    recipe: Recipe,
    seed: int,
    parameters: int,
    device: torch.device,
    precision: str,
    data: DataIdentity | None = None,
) -> Record:
    """A record before the first epoch."""
    return Record(
        recipe=json.loads(to_json(recipe)),
        seed=seed,
        commit=commit(),
        versions=versions(),
        device=device_name(device),
        precision=precision,
        parameters=parameters,
        metric=recipe.training.metric,
        data=data,
    )


def write_record(folder: Path, record: Record) -> None:
    """record.json and metrics.csv."""
    write_text(folder / "record.json", valid_json(record.to_json(), indent=1))
    write_whole(folder / "metrics.csv", lambda part: _write_csv(part, record.epochs))


def load_record(path: Path) -> Record:
    """The record in the folder of a run, or in a record.json; raises InputError where it is missing or damaged."""
    file = path / "record.json" if path.is_dir() else path
    text = read_text(file, "give the folder of a run, or its record.json.")
    try:
        values = parse_json(text)
    except InputError as error:
        raise InputError(
            f"{file} is not the record of a run ({error}): give the folder that `ckgconv train` wrote."
        ) from error
    return Record.from_json(values, str(file))


def read_record(folder: Path) -> Record | None:
    """The record in the folder of a run; None where it is missing or damaged."""
    try:
        return load_record(folder / "record.json")
    except InputError:
        return None


def _known(values: Mapping[str, Any], *optional: str) -> dict[str, Any]:
    """The values without those of the `optional` names that are None."""
    return {name: value for name, value in values.items() if value is not None or name not in optional}


def _write_csv(path: Path, epochs: list[Epoch]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        known = any(epoch.val_loss is not None for epoch in epochs)
        columns = [column.name for column in fields(Epoch) if known or column.name != "val_loss"]
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(epoch.to_json() for epoch in epochs)
