"""One or several trained networks as one predictor of molecules.

    from ckgconv import Predictor

    predictor = Predictor.open("zinc")
    molecule = predictor.predict("CCO")
    molecules = predictor.predict(["CCO", "c1ccccc1", "C1CC"])

Legend: K members, M molecules, T outputs.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import overload

import numpy as np

from ckgconv.checks import require
from ckgconv.engine.members import all_members
from ckgconv.engine.opened import open_network
from ckgconv.engine.predict import predict_molecules, read_for
from ckgconv.engine.run import Run
from ckgconv.engine.together import check_together
from ckgconv.uncertainty.predicted import PredictedMolecule, PredictedMolecules

Tick = Callable[[int], None]


class Predictor:
    """Networks that predict the same targets of molecules together.

    Args:
        runs: one, or several that were trained on the same data; opened or trained here.
    """

    def __init__(self, runs: Sequence[Run]) -> None:
        require(len(runs) > 0, "No run was given: give at least one.")
        self.runs = tuple(runs)
        if len(runs) > 1:
            check_together(self.runs)

    @classmethod
    def open(cls, *folders: Path | str, device: str = "auto") -> "Predictor":
        """Of one or several folders of runs or ensembles, or names of trained networks."""
        return cls([open_network(path, device) for path in all_members(folders)])

    @property
    def run(self) -> Run:
        """The first member, whose recipe names targets and task as every other does."""
        return self.runs[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the T outputs: the targets, or prediction, prediction0, … where these have no names."""
        return output_names(self.run)

    @overload
    def predict(self, smiles: str) -> PredictedMolecule: ...  # type: ignore[overload-overlap]  # a text is a sequence

    @overload
    def predict(self, smiles: Sequence[str], tick: Tick | None = None) -> PredictedMolecules: ...

    def predict(self, smiles: str | Sequence[str], tick: Tick | None = None) -> PredictedMolecule | PredictedMolecules:
        """Predict one molecule, or several in their order; `tick` is called with the rows done since its last call.

        Every molecule has a prediction or a reason why there is none.
        """
        if isinstance(smiles, str):
            return self._predict([smiles], None).row(0)
        return self._predict(smiles, tick)

    def _predict(self, smiles: Sequence[str], tick: Tick | None) -> PredictedMolecules:
        molecules, reasons = read_for(self.runs, smiles)
        tick_all = tick or (lambda count: None)
        # The last member's rows are the ones that are done.
        ticks = [(lambda count: None)] * (len(self.runs) - 1) + [tick_all]
        pairs = zip(self.runs, ticks, strict=True)
        members = np.stack([predict_molecules(run, molecules, each).values for run, each in pairs])
        deviation = members.std(0, ddof=1) if len(self.runs) > 1 else None
        return PredictedMolecules(self.names, smiles, members.mean(0), reasons, deviation)


def output_names(run: Run) -> tuple[str, ...]:
    """Names of the outputs of a run."""
    outputs = run.recipe.model.head.outputs
    unnamed = ("prediction",) if outputs == 1 else tuple(f"prediction{index}" for index in range(outputs))
    return tuple(run.recipe.data.targets) or unnamed
