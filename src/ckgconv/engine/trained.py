"""Trained networks by name: those of the package, and of installed packages that add to them.

    ckgconv predict zinc molecules.csv                open_run("zinc")
    ckgconv predict zinc zinc-grit molecules.csv      the mean of two

Each is the folder of a run without its checkpoints, at most 4 MB: recipe.json, best.json and best.safetensors. A new
one is such a folder in `trained`, and a line here.
"""

from pathlib import Path

from ckgconv.checks import check_path
from ckgconv.files import explaining_file_errors
from ckgconv.recipes.pretraining import PRETRAINED
from ckgconv.registry import Registry

FOLDER = Path(__file__).parents[1] / "trained"

OURS = {
    # Of the runs in results/zinc the one with the best validation metric: seed 0 at 9ae56c6, test MAE 0.0590.
    "zinc": FOLDER / "zinc",
    # Of the other networks in results/models-zinc the one with the best validation metric: test MAE 0.0619.
    "zinc-grit": FOLDER / "zinc-grit",
    # What runs on tables of molecules begin with: results/pretrain.
    PRETRAINED: FOLDER / PRETRAINED,
}
TRAINED: Registry[Path] = Registry("trained network", "ckgconv.trained", OURS, kind=Path)


@explaining_file_errors()
def run_folder(what: Path | str) -> Path:
    """The folder of a run that a user names: by its path, or by the name of a trained network where no such path is."""
    check_path("The run", what)
    path = Path(what)
    return TRAINED[str(what)] if not path.exists() and str(what) in TRAINED else path
