"""Saved runs, opened to predict or to be evaluated."""

from collections.abc import Callable
from pathlib import Path
from typing import Unpack

from ckgconv.checks import InputError, require
from ckgconv.data import PackedDataset
from ckgconv.engine import checkpoint
from ckgconv.engine.members import is_ensemble, member_folder
from ckgconv.engine.parts import OpenedParts, Parts, parts_of
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import Record
from ckgconv.engine.resume import saved_endings, saved_scale
from ckgconv.engine.run import Run, make_learner
from ckgconv.engine.run_data import GivenData, no_data, opened_data
from ckgconv.engine.saved_state import State, check_tensors, most_bytes
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.trained import TRAINED, run_folder
from ckgconv.files import explaining_file_errors
from ckgconv.recipe import Recipe

# What finds the data set of a run; None: the network is opened alone.
FindData = Callable[[Recipe, Record], PackedDataset]


def open_run(
    folder: Path | str,
    device: str = "auto",
    precision: str | None = None,
    data: GivenData = None,
    **given: Unpack[OpenedParts],
) -> Run:
    """The best network of a finished or interrupted run, with the data set it was trained on.

    `folder` may also be the name of a network that came with the package (`TRAINED`), such as "zinc".

    A data set that was given in Python is not kept with the run: give it again as `data` to evaluate; predictions do
    without. Otherwise `data` is the folder of packed files, as in `train`. Other data is refused. A `model` or `metric`
    that was given in Python has to be given again.
    """

    def find(recipe: Recipe, record: Record) -> PackedDataset:
        return opened_data(place, recipe, data, record.data)

    place = run_folder(folder)
    return open_with(place, device, precision, parts_of(given), find)


def open_network(
    folder: Path | str, device: str = "auto", precision: str | None = None, **given: Unpack[OpenedParts]
) -> Run:
    """As `open_run` without the data set: enough to predict."""
    return open_with(run_folder(folder), device, precision, parts_of(given), None)


@explaining_file_errors()
def open_with(folder: Path, device: str, precision: str | None, parts: Parts, find: FindData | None) -> Run:
    """The best network of a run, with the data set that `find` returns."""
    if not folder.is_dir():
        known = ", ".join(TRAINED)
        raise InputError(f"{folder} is not a folder: give the folder of a run, or a trained network by name ({known}).")
    require(
        not is_ensemble(folder),
        f"{folder} is an ensemble: open it with open_runs or Predictor.open, or give one of its members, such as "
        f"{member_folder(folder, 0)}.",
    )
    records_only = "it holds a record but no weights" if (folder / "record.json").exists() else "it is no run"
    require((folder / "recipe.json").exists(), f"{folder} has no recipe.json, {records_only}: give a run's folder.")
    recipe = read_recipe(folder / "recipe.json")
    parts.check(recipe, ["model"] if find is None else ["model", "metric"], folder)
    model = parts.build_model(recipe)
    try:
        weights, values = checkpoint.load(folder / "best", most_bytes(model))
        state = State.from_json(values, model.outputs, str(folder / "best.json"))
    except InputError as error:
        resume = f"'ckgconv train {folder / 'recipe.json'} --resume'"
        raise InputError(f"{error} Write it again with {resume}.") from error
    try:
        check_tensors(weights, model.state_dict(), "its weights")
    except InputError as error:
        reason = str(error).rstrip(".")
        raise InputError(
            f"The weights in {folder} are not those of its recipe.json ({reason}): restore either file."
        ) from error
    fabric = make_fabric(device, precision or state.record.precision)
    data = no_data() if find is None else find(recipe, state.record)
    learner = make_learner(fabric, model, data, recipe, parts)
    learner.model.load_state_dict(weights)
    learner.scale = saved_scale(state, learner)
    run = Run(recipe, learner, state.record, folder, weights)
    if find is not None and state.record.test is None:
        run.endings = saved_endings(run)
    return run
