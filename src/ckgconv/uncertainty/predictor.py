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
from ckgconv.data.fingerprints import fingerprint
from ckgconv.data.molecules import parse_smiles
from ckgconv.data.packed_molecules import with_values
from ckgconv.engine.compatible import check_together
from ckgconv.engine.members import all_members
from ckgconv.engine.opened import open_network
from ckgconv.engine.output_names import class_columns, most_probable
from ckgconv.engine.predict_molecules import no_tick, predict_molecules, read_for
from ckgconv.engine.run import Run
from ckgconv.engine.trained import run_folder
from ckgconv.uncertainty.calibration import calibrated_classes, calibrated_labels
from ckgconv.uncertainty.intervals import Values, bounds, check_level
from ckgconv.uncertainty.kept import Uncertainty, read_uncertainty
from ckgconv.uncertainty.outputs import output_names
from ckgconv.uncertainty.predicted import Nearness, PredictedMolecule, PredictedMolecules

Tick = Callable[[int], None]
Features = Sequence[Sequence[float]]
LEVEL = 0.9


class Predictor:
    """Networks that predict the same targets of molecules together.

    Args:
        runs: one, or several that were trained on the same data; opened or trained here.
        uncertainty: what was fitted for these runs together (`ckgconv.uncertainty.fit`); None: no intervals,
            calibrated probabilities or similarities.
        level: of the intervals.
    """

    def __init__(self, runs: Sequence[Run], uncertainty: Uncertainty | None = None, level: float = LEVEL) -> None:
        require(len(runs) > 0, "No run was given: give at least one.")
        check_level(level)
        self.runs, self.uncertainty, self.level = tuple(runs), uncertainty, level
        if len(runs) > 1:
            check_together(self.runs)
        if uncertainty is not None:
            require(
                uncertainty.members == len(runs) and uncertainty.outputs == self.names,
                f"What was fitted is for {uncertainty.members} members and the outputs "
                f"{', '.join(uncertainty.outputs)}, not for {len(runs)} and {', '.join(self.names)}: fit it again.",
            )

    @classmethod
    def open(cls, *folders: Path | str, device: str = "auto", level: float = LEVEL) -> "Predictor":
        """Of one or several folders of runs or ensembles, or names of trained networks.

        What was fitted after training is read from the folder of one run or ensemble. Of several folders only the
        training molecules are, since residuals of one network say nothing of the mean of several.
        """
        runs = [open_network(path, device) for path in all_members(folders)]
        kept = read_uncertainty(run_folder(folders[0])) if folders else None
        if kept is not None and len(folders) > 1:
            kept = Uncertainty(len(runs), kept.outputs, applicability=kept.applicability)
        return cls(runs, kept, level)

    @property
    def run(self) -> Run:
        """The first member, whose recipe names targets and task as every other does."""
        return self.runs[0]

    @property
    def names(self) -> tuple[str, ...]:
        """Of the T outputs: the targets, or prediction, prediction0, … where these have no names."""
        return output_names(self.run)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about what is undefined and why."""
        if self.uncertainty is None:
            return ()
        found = [f"Not calibrated: {note}." for note in self.uncertainty.notes]
        for name, scores in zip(self.names, self.uncertainty.scores, strict=False):
            if scores is not None and np.isnan(scores.quantile(self.level)):
                found.append(
                    f"No interval of {name} at level {self.level:g}: {len(scores.ascending)} validation rows allow "
                    f"{scores.largest_level:.3f} at most."
                )
        return tuple(found)

    @overload
    def predict(self, smiles: str, *, features: Features | None = None) -> PredictedMolecule: ...  # type: ignore[overload-overlap]  # a text is a sequence

    @overload
    def predict(
        self, smiles: Sequence[str], tick: Tick | None = None, features: Features | None = None
    ) -> PredictedMolecules: ...

    def predict(
        self, smiles: str | Sequence[str], tick: Tick | None = None, features: Features | None = None
    ) -> PredictedMolecule | PredictedMolecules:
        """Predict one molecule, or several in their order; `tick` is called with the rows done since its last call.

        Every molecule has a prediction or a reason why there is none. `features` has a row for each molecule: the
        values of the columns `data.features` of the recipe, NaN where unknown.
        """
        if isinstance(smiles, str):
            return self._predict([smiles], None, features).row(0)
        return self._predict(smiles, tick, features)

    def _predict(
        self, smiles: Sequence[str], tick: Tick | None, features: Features | None, embed: bool = False
    ) -> PredictedMolecules:
        molecules, reasons = read_for(self.runs, smiles)
        molecules = molecules if features is None else with_values(molecules, features)
        # The last member's rows are the ones that are done.
        ticks = [no_tick] * (len(self.runs) - 1) + [tick or no_tick]
        pairs = zip(self.runs, ticks, strict=True)
        found = [predict_molecules(run, molecules, each, with_embeddings=embed) for run, each in pairs]
        members, several = np.stack([each.values for each in found]), len(self.runs) > 1
        values, deviation = members.mean(0), members.std(0, ddof=1) if several else None
        lower, upper = self.interval(values, deviation)
        return PredictedMolecules(
            names=self.names,
            smiles=smiles,
            values=values,
            reasons=reasons,
            deviation=deviation,
            median=np.median(members, axis=0) if several else None,
            lower=lower,
            upper=upper,
            calibrated=self.calibrated(values),
            nearness=self._nearness(smiles, reasons),
            classes=most_probable(self.run.recipe, _rows(values, reasons)),
            embeddings=found[0].embeddings,
            scored=self._scored,
        )

    @property
    def _scored(self) -> list[bool] | None:
        """[T] which outputs have an interval, where some have and others have not."""
        scores = () if self.uncertainty is None else self.uncertainty.scores
        return [each is not None for each in scores] if any(scores) and not all(scores) else None

    def embedded(self, smiles: Sequence[str], features: Features | None = None) -> PredictedMolecules:
        """Predictions with what the head of the one network reads."""
        require(
            len(self.runs) == 1,
            f"--embed was given with {len(self.runs)} runs, each of which has features of its own: give one.",
        )
        return self._predict(smiles, None, features, embed=True)

    def interval(self, values: Values, deviation: Values | None) -> tuple[Values | None, Values | None]:
        """Bounds [M, T] of values [M, T]; None where no interval was fitted."""
        if self.uncertainty is None or not any(self.uncertainty.scores):
            return None, None
        return bounds(self.uncertainty.scores, self.level, values, deviation)

    def calibrated(self, values: Values) -> Values | None:
        """Calibrated probabilities [M, T]; None where none were fitted."""
        calibrations = () if self.uncertainty is None else self.uncertainty.calibrations
        if not any(calibrations):
            return None
        if len(calibrations) == 1 and values.shape[1] > 1 and calibrations[0] is not None:
            return calibrated_classes(calibrations[0], values)
        found = np.full_like(values, np.nan)
        for output, each in enumerate(calibrations):
            if each is not None:
                found[:, output] = calibrated_labels(each, values[:, output])
        for start, names in class_columns(self.run.recipe).values():
            shared = calibrations[start] if len(calibrations) == values.shape[1] else None
            if shared is not None:
                places = slice(start, start + len(names))
                found[:, places] = calibrated_classes(shared, values[:, places])
        return found

    def _nearness(self, smiles: Sequence[str], reasons: Sequence[str]) -> Nearness | None:
        domain = None if self.uncertainty is None else self.uncertainty.applicability
        if domain is None:
            return None
        most_atoms = self.run.recipe.data.most_atoms
        rows = zip(smiles, reasons, strict=True)
        return domain.nearness([None if why else fingerprint(parse_smiles(each, most_atoms)) for each, why in rows])


def _rows(values: Values, reasons: Sequence[str]) -> list[list[float] | None]:
    """Values [M, T] by row; None where there is no prediction."""
    rows: list[list[float]] = values.tolist()
    return [None if why else row for row, why in zip(rows, reasons, strict=True)]
