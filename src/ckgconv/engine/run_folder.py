"""The folder of a run, before anything in it is used: whether a run may be started or resumed there, and with what.

A run is started in a folder that is absent or empty, and resumed in one that holds a recipe.json. record.json is
written before it, so that seed and precision of every run are known, however early it was killed. What a process left
that was killed even before is no run, and counts as empty.
"""

from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.engine import checkpoint
from ckgconv.engine.lock import OF_RUN
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.record import Record, load_record, read_record
from ckgconv.files import explaining_file_errors, is_left_behind
from ckgconv.recipe import Recipe

# Tables that training writes beside the run.
TABLES = ("metrics.csv", "rows.csv")
# Folders in that of a run.
FOLDERS = ("checkpoints", "tensorboard")


@explaining_file_errors()
def has_run(folder: Path) -> bool:
    """Whether a folder holds a run to resume."""
    return (folder / "recipe.json").exists()


@explaining_file_errors()
def holds_record(folder: Path) -> bool:
    """Whether a folder holds the record of a run, sound or not."""
    return (folder / "record.json").exists() or bool(checkpoint.stems(folder / "checkpoints"))


def check_output(path: Path) -> None:
    """Refuse a file to write that is one of a run or an ensemble."""
    own = path.suffix in (".json", ".safetensors") or path.name in TABLES
    of_run = any(has_run(folder) or is_ensemble(folder) for folder in (path.parent, path.parent.parent))
    require(
        not (own and of_run and path.exists()),
        f"{path} is a file of a run, which would be lost: choose another name with -o.",
    )


@explaining_file_errors()
def is_free(folder: Path) -> bool:
    """Whether a run may be started in a folder."""
    if not folder.is_dir():
        return not folder.exists() and not folder.is_symlink()
    others = [each for each in folder.iterdir() if each.name != OF_RUN and not is_left_behind(each)]
    return not others or (_is_beginning(folder) and {each.name for each in others} <= {"record.json", "metrics.csv"})


def _is_beginning(folder: Path) -> bool:
    record = read_record(folder)
    return record is not None and not record.epochs


def check_folder(folder: Path | None, recipe: Recipe, seed: int, precision: str, resume: bool) -> None:
    """Refuse a folder that is in use, or that does not hold the run to resume."""
    if folder is None:
        require(not resume, "resume is true, but a run in memory cannot be resumed: give its folder.")
        return
    if not resume:
        what_next = "continue it with --resume, or choose" if has_run(folder) else "choose"
        require(is_free(folder), f"{folder} already exists: {what_next} another folder with --out.")
        return
    require(
        has_run(folder) or not holds_record(folder),
        f"{folder} holds a run without its recipe.json: put it back, or choose another folder with --out.",
    )
    require(has_run(folder), f"{folder} holds no run to resume: start it without --resume.")
    for name in FOLDERS:
        link = (folder / name).is_symlink()
        require(not link, f"{folder / name} is a link, and a run writes nowhere else: put the folder in its place.")
    saved = folder / "recipe.json"
    remedy = f"resume it with 'ckgconv train {saved} --resume'."
    kept = read_recipe(saved)
    require(
        kept.given == recipe.given,
        f"{folder} was trained with {_listed(kept.given)} given in Python, not with {_listed(recipe.given)}: give the "
        f"same parts to train(…, resume=True).",
    )
    require(
        kept == recipe,
        f"{folder} was trained with another recipe: {remedy} To train its network further by this one, begin a new run "
        f"with --init {folder}.",
    )
    record = saved_record(folder)
    require(record.seed == seed, f"{folder} was trained with seed {record.seed}, not {seed}: {remedy}")
    require(
        record.precision == precision,
        f"{folder} was trained with precision {record.precision}, not {precision}: {remedy}",
    )


def _listed(given: tuple[str, ...]) -> str:
    return " and ".join(given) or "nothing"


def saved_record(folder: Path) -> Record:
    """The record of a run to resume, from the newest source that is sound: checkpoints, record.json, best.json."""
    for stem in checkpoint.stems(folder / "checkpoints"):
        record = _record_in(stem)
        if record is not None:
            return record
    try:
        return load_record(folder / "record.json")
    except InputError as error:
        record = _record_in(folder / "best")
        if record is not None:
            return record
        raise InputError(
            f"{folder} cannot be resumed, since seed and precision of its run are not known ({error}) Restore its "
            f"record.json, or train it again in another folder."
        ) from error


def _record_in(stem: Path) -> Record | None:
    try:
        return Record.from_json(checkpoint.load_state(stem).get("record"))
    except InputError:
        return None
