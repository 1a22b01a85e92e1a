"""Pretraining: a network learns to predict computed properties of many molecules, all at once.

Its weights are those with which runs on small tables begin (`engine.initial`). Which molecules it saw is written to
molecules.json in the folder of the run.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from ckgconv.data.properties import PROPERTIES
from ckgconv.engine.describe import DescribedMolecules
from ckgconv.engine.run import Run, train
from ckgconv.engine.watcher import Watcher
from ckgconv.files import valid_json, write_text
from ckgconv.recipes.pretraining import pretraining


@dataclass(frozen=True)
class Pretraining:
    """How long a network is trained, and where."""

    epochs: int = 6
    seed: int = 0
    device: str = "auto"
    precision: str = "32"


def pretrain(molecules: DescribedMolecules, plan: Pretraining, folder: Path, watcher: Watcher) -> Run:
    """Train the network of `recipes.pretraining` on described molecules, and keep the run in `folder`."""
    names = PROPERTIES[molecules.origin.properties].names
    recipe = pretraining(molecules.origin.source, names, plan.epochs)
    run = train(
        recipe, plan.seed, molecules.data, folder, device=plan.device, precision=plan.precision, watcher=watcher
    )
    write_text(folder / "molecules.json", valid_json(asdict(molecules.origin.counts)))
    return run
