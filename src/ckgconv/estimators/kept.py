"""A run in memory ↔ the files of its run folder: weights as safetensors, everything else as JSON.

What is written is a run folder like any other, which `ckgconv predict` and `open_run` read. The same files as bytes are
what a pickled estimator holds in place of its network.
"""

import tempfile
from dataclasses import replace
from pathlib import Path

from ckgconv.checks import require
from ckgconv.engine.opened import open_network
from ckgconv.engine.record import write_record
from ckgconv.engine.resume import save_best
from ckgconv.engine.run import Run
from ckgconv.engine.run_folder import is_free
from ckgconv.files import write_text
from ckgconv.recipes import to_json

FILES = ("recipe.json", "record.json", "best.safetensors", "best.json")


def write_run(run: Run, folder: Path) -> None:
    """The folder of a run that was trained in memory."""
    require(is_free(folder), f"{folder} already exists: choose another folder.")
    placed = replace(run, folder=folder)
    write_record(folder, run.record)
    write_text(folder / "recipe.json", to_json(run.recipe))
    save_best(placed)


def run_bytes(run: Run) -> dict[str, bytes]:
    """The files of a run, by name."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "run"
        write_run(run, folder)
        return {name: (folder / name).read_bytes() for name in FILES}


def run_of_bytes(files: dict[str, bytes], device: str) -> Run:
    """The run of these files, in memory."""
    with tempfile.TemporaryDirectory() as place:
        for name in FILES:
            (Path(place) / name).write_bytes(files[name])
        return replace(open_network(place, device), folder=None)
