"""Options of `ckgconv train` that say which weights a run begins with, and what a network reads beside molecules."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import require
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.recipe import Recipe


@dataclass(frozen=True)
class InitialOptions:
    """Weights to begin with."""

    init: Annotated[
        str | None, typer.Option("--init", help="Begin with the weights of a run: its folder, or a trained network.")
    ] = None
    from_scratch: Annotated[bool, typer.Option("--from-scratch", help="Begin with random weights.")] = False
    freeze: Annotated[
        int | None, typer.Option("--freeze", help="Leave stems, kernels and this many blocks as they begin.")
    ] = None

    @property
    def given(self) -> list[str]:
        """Paths of the values given."""
        named = {"training.init": bool(self.init) or self.from_scratch, "training.freeze": self.freeze is not None}
        return [path for path, is_given in named.items() if is_given]

    def applied(self, chosen: Recipe) -> Recipe:
        """The recipe with the values given; a folder is named by its whole path, as the data is."""
        require(not (self.from_scratch and self.init), "--init and --from-scratch were both given: choose one of them.")
        training = chosen.training
        if self.from_scratch:
            training = replace(training, init="")
        if self.init:
            folder = Path(self.init)
            training = replace(training, init=str(folder.resolve()) if folder.exists() else self.init)
        if self.freeze is not None:
            training = replace(training, freeze=self.freeze)
        return replace(chosen, training=training)


@dataclass(frozen=True)
class FeatureOptions:
    """What the network reads of each row of a table beside its molecule."""

    features: Annotated[
        list[str] | None, typer.Option("--features", help="CSV: columns of numbers to read beside each molecule.")
    ] = None
    descriptors: Annotated[
        bool | None,
        typer.Option("--descriptors/--no-descriptors", help="CSV: read RDKit's descriptors beside each molecule."),
    ] = None

    def applied(self, chosen: Recipe) -> Recipe:
        """The recipe of a table with the values given."""
        columns = chosen.data.features if self.features is None else tuple(self.features)
        require(len(set(columns)) == len(columns), "The same column of --features was given twice: give each once.")
        shared = sorted(set(columns) & {*chosen.data.targets, chosen.data.smiles})
        require(not shared, f"--features names {', '.join(shared)}, a target or the SMILES: leave it out.")
        data = replace(chosen.data, features=columns)
        if self.descriptors is not None:
            data = replace(data, descriptors="rdkit" if self.descriptors else "none")
        read = len(columns) + (len(DESCRIPTORS) if data.descriptors == "rdkit" else 0)
        return replace(chosen, data=data, model=replace(chosen.model, graph_features=read))

    def refuse(self, what: str) -> None:
        """Refuse them for anything but a table."""
        given = self.features is not None or self.descriptors is not None
        require(not given, f"--features and --descriptors belong to a CSV, not to {what!r}: leave them out.")
