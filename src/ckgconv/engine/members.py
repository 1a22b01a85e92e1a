"""The folder of an ensemble: runs on the same data and split that were trained to predict together.

    ensemble.json          the names of the members' folders, written once all have been trained
    member0, member1, …    a run each

Commands take such a folder in place of a run; `member_folders` names the runs in it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import with_config

from ckgconv.checks import InputError, check_instance, require
from ckgconv.engine.trained import run_folder
from ckgconv.files import explaining_file_errors, read_text, valid_json, write_text
from ckgconv.recipe.format import FORMAT, MOST_SETTINGS, group_of
from ckgconv.recipe.values import KEPT, read

FILE = "ensemble.json"


@with_config(KEPT)
@dataclass(frozen=True)
class Members:
    """ensemble.json."""

    members: tuple[str, ...]


@explaining_file_errors()
def is_ensemble(folder: Path | str) -> bool:
    """Whether a folder holds an ensemble."""
    return (Path(folder) / FILE).is_file()


def member_folder(folder: Path | str, place: int) -> Path:
    """Where a member is kept."""
    return Path(folder) / f"member{place}"


def write_members(folder: Path, count: int) -> None:
    """ensemble.json."""
    names = [member_folder(folder, place).name for place in range(count)]
    write_text(folder / FILE, valid_json({"format": FORMAT, "members": names}, indent=1))


def member_folders(what: Path | str) -> list[Path]:
    """The runs of an ensemble; of a run its own folder. `what` may be the name of a trained network."""
    folder = run_folder(what)
    if not is_ensemble(folder):
        return [folder]
    remedy = "train the ensemble again, or give its members one by one."
    try:
        names = read(group_of(read_text(folder / FILE, remedy, MOST_SETTINGS)), Members).members
        require(len(names) > 1, "it names fewer than two members")
        for name in names:
            require(Path(name).name == name and name not in ("", ".", ".."), f"its member {name!r} is no folder in it")
    except InputError as error:
        raise InputError(f"{folder / FILE} cannot be used ({str(error).rstrip('.')}): {remedy}") from error
    return [folder / name for name in names]


def all_members(folders: Sequence[Path | str]) -> list[Path]:
    """The runs of several runs and ensembles, each of which may occur once."""
    check_instance("The list of runs", folders, (list, tuple), "a list of folders")
    paths = [path for folder in folders for path in member_folders(folder)]
    for place, path in enumerate(paths):
        earlier = [other.resolve() for other in paths[:place]]
        require(path.resolve() not in earlier, f"{path} was given twice: give each run once.")
    return paths
