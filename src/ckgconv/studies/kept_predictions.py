"""What runs predict for the test split, computed once and kept in .npz files next to a study's page.

A file is named after the weights that it was computed from, so that those of a run trained anew are never mistaken for
those of the run before it. Numbers alone are in it: nothing in it can execute code.

Legend: M rows, T outputs.
"""

import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ckgconv.checks import InputError, require
from ckgconv.engine.ensemble import metric_of, predicted_outcomes
from ckgconv.engine.opened import open_run
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import Record, load_record
from ckgconv.files import digest, write_whole
from ckgconv.recipe import Recipe
from ckgconv.studies.report import Options
from ckgconv.tasks.given import task_of


@dataclass(frozen=True)
class Kept:
    """A run and its predictions for the test split."""

    folder: Path
    recipe: Recipe
    record: Record
    outcome: Tensor  # [M, T] float64, values or probabilities
    target: Tensor  # [M] or [M, T]
    seconds: float  # that predicting took when it was done
    value: float  # metric of this run alone


def kept_predictions(kind: str, folders: Sequence[Path], options: Options, page: Path) -> list[Kept]:
    """Predictions of runs whose models are of a kind, from the files under `page` where they are there."""
    places = [folder.resolve() for folder in folders]
    for place, folder in enumerate(folders):
        require(places[place] not in places[:place], f"{folder} was given twice: give each run once.")
    return [_kept(kind, folder, options, page) for folder in folders]


def _kept(kind: str, folder: Path, options: Options, page: Path) -> Kept:
    require(folder.is_dir(), f"{folder} is not a folder: give the folder of a run.")
    recipe, record = read_recipe(folder / "recipe.json"), load_record(folder)
    require(
        recipe.model.kind == kind,
        f"{folder} was given with --{kind}, but its model is of kind {recipe.model.kind!r}: give it where it belongs.",
    )
    require(record.test is not None, f"{folder} is not finished: finish it with --resume before it joins an ensemble.")
    weights = folder / "best.safetensors"
    require(weights.exists(), f"{folder} holds a record but no weights (best.safetensors): give a run that has them.")
    name = f"{kind}-seed{record.seed}-{digest(weights.read_bytes())[:12]}.npz"
    arrays = _read(page / "predictions" / name)
    if arrays is None:
        arrays = _predicted(folder, options)
        write_whole(page / "predictions" / name, lambda part: _write(part, arrays))
    outcome, target = torch.from_numpy(arrays["outcome"]), torch.from_numpy(arrays["target"])
    value = metric_of(task_of(recipe.training), outcome, target)
    return Kept(folder, recipe, record, outcome, target, float(arrays["seconds"]), value)


def _predicted(folder: Path, options: Options) -> dict[str, np.ndarray]:
    start = time.perf_counter()
    outcome, target = predicted_outcomes(open_run(folder, options.device, data=options.data_dir), "test")
    seconds = np.array(round(time.perf_counter() - start, 3))
    return {"outcome": outcome.numpy(), "target": target.numpy(), "seconds": seconds}


def _read(path: Path) -> dict[str, np.ndarray] | None:
    """The arrays of a file; None where it is missing or damaged, and has to be computed again."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in ("outcome", "target", "seconds")}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def _write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def check_same(runs: Sequence[Kept]) -> None:
    """Refuse runs that were not tested on the same targets by the same metric."""
    first = runs[0]
    for run in runs[1:]:
        require(
            run.record.metric == first.record.metric,
            f"{first.folder} is judged by {first.record.metric}, but {run.folder} by {run.record.metric}: give runs of "
            f"the same metric.",
        )
        if run.outcome.shape != first.outcome.shape or not _equal(run.target, first.target):
            raise InputError(
                f"{run.folder} was not tested on the same targets as {first.folder}: give runs that were trained on "
                f"the same data."
            )


def _equal(one: Tensor, other: Tensor) -> bool:
    """Of targets, of which unknown ones may be NaN."""
    return one.shape == other.shape and bool(((one == other) | ((one != one) & (other != other))).all())
