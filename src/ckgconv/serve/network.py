"""The runs that are served, one or an ensemble: what a worker computes, as plain values that JSON can represent."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError
from ckgconv.engine.predict_molecules import featuriser_of
from ckgconv.engine.run import Run
from ckgconv.explanation.drawing import draw
from ckgconv.explanation.explainer import Explainer
from ckgconv.uncertainty.predicted import PredictedMolecule
from ckgconv.uncertainty.predictor import Predictor

# The end of the sentence about a molecule that is too large, and what it ends with where the server is what refuses it.
OF_THE_RUN, OF_THE_SERVER = "allowed (data.most_atoms).", "that this server allows (--atoms)."
NOT_FINITE = "The prediction of the network is not a finite number."
# A molecule that every network reads, to see which columns its predictions have.
PROBE = "CCO"


Features = Sequence[Sequence[float | None]]


class Network:
    """Opened runs, for molecules of at most `atoms` atoms.

    Args:
        folders: of runs or ensembles, or names of trained networks.
    """

    def __init__(self, folders: Sequence[str], device: str, atoms: int) -> None:
        self.predictor = Predictor.open(*folders, device=device)
        self.atoms = atoms
        self.explainer = cache(lambda target: Explainer(self.predictor.runs, target))
        for run in self.predictor.runs:
            featuriser_of(run)  # refuses a run that was not trained on molecules
            limited = replace(run.recipe.data, most_atoms=min(atoms, run.recipe.data.most_atoms))
            run.recipe = replace(run.recipe, data=limited)

    def predict(self, smiles: Sequence[str], features: Features | None = None) -> list[dict[str, Any]]:
        """A row for each molecule, in order: its predictions, or the reason why it has none.

        `features` are values of the columns that the runs read beside molecules, None where unknown.
        """
        return [self._row(each) for each in self.predictor.predict(list(smiles), features=_numbers(features))]

    def cells(self, smiles: Sequence[str], features: Features | None = None) -> list[dict[str, Any]]:
        """A row for each molecule, in order, with the columns that `ckgconv predict` writes."""
        columns = self.predictor.predict(list(smiles), features=_numbers(features)).columns()
        columns["reason"] = [self._worded(reason) for reason in columns["reason"]]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def explain(self, smiles: str, target: int, features: Sequence[float | None] = ()) -> dict[str, Any]:
        """What atoms and bonds contribute to the output `target`, with a drawing; raises InputError for no molecule."""
        try:
            found = self.explainer(target)(smiles, *(_numbers([features]) or []))
        except InputError as error:
            raise InputError(self._worded(str(error))) from error
        return {
            "smiles": smiles,
            "target": self.predictor.names[target],
            "unit": found.unit,
            "prediction": found.prediction,
            "baseline": found.baseline,
            "residual": found.residual,
            "descriptors": found.descriptors,
            "features": found.features,
            "atoms": list(found.atoms),
            "bonds": [
                {"atoms": list(ends), "contribution": value}
                for ends, value in zip(found.ends, found.bonds, strict=True)
            ],
            "sentence": found.sentence(),
            "svg": draw(found),
        }

    def about(self) -> dict[str, Any]:
        """What the page says about the runs: no path, and nothing of the data but counts."""
        first = self.predictor.run
        identity, probe = first.record.data, self.predictor.predict(PROBE, features=_numbers(self._probe))
        return {
            "name": first.recipe.name,
            "targets": list(self.predictor.names),
            "kind": first.learner.task.loss.targets,
            "metric": first.record.metric,
            "members": [_member(run) for run in self.predictor.runs],
            "data": {
                "name": Path(first.recipe.data.name).name,
                "smiles_column": first.recipe.data.smiles,
                "molecules": None if identity is None else identity.graphs,
                "train": None if identity is None else identity.train,
                "validation": None if identity is None else identity.val,
                "test": None if identity is None else identity.test,
            },
            "atoms": first.recipe.data.most_atoms,
            "features": list(first.recipe.data.features),
            "columns": list(self.cells([PROBE], self._probe)[0]),
            "intervals": probe.lower is not None,
            "level": self.predictor.level if probe.lower is not None else None,
            "applicability": probe.outside is not None,
            "explanations": self._explains(),
            "notes": list(self.predictor.notes),
        }

    @property
    def _probe(self) -> list[list[float | None]]:
        """Of the probe, of which no column is known."""
        return [[None] * len(self.predictor.run.recipe.data.features)]

    def _row(self, found: PredictedMolecule) -> dict[str, Any]:
        reason = found.reason
        if found.values is None or not all(map(math.isfinite, found.values)):
            return {"smiles": found.smiles, "reason": self._worded(reason or NOT_FINITE)}
        groups = {name: getattr(found, name) for name in ("deviation", "lower", "upper", "calibrated")}
        predictions = [
            {
                "target": target,
                "value": value,
                **{name: None if values is None else _known(values[place]) for name, values in groups.items()},
            }
            for place, (target, value) in enumerate(zip(found.names, found.values, strict=True))
        ]
        domain = {name: getattr(found, name) for name in ("similarity", "nearest", "outside")}
        return {"smiles": found.smiles, "predictions": predictions, **domain}

    def _explains(self) -> bool:
        """Whether this kind of network can be explained."""
        try:
            self.explain(PROBE, 0, self._probe[0])
        except InputError:
            return False
        return True

    def _worded(self, reason: str) -> str:
        own = self.predictor.run.recipe.data.most_atoms == self.atoms
        return reason.replace(OF_THE_RUN, OF_THE_SERVER) if own else reason


def _numbers(features: Features | None) -> list[list[float]] | None:
    """NaN for None."""
    if features is None:
        return None
    return [[math.nan if value is None else value for value in row] for row in features]


def _known(value: float) -> float | None:
    """None for NaN and infinities, which JSON cannot represent."""
    return value if math.isfinite(value) else None


def _member(run: Run) -> dict[str, Any]:
    best = run.record.best
    return {
        "run": "in memory" if run.folder is None else run.folder.resolve().name,
        "seed": run.record.seed,
        "parameters": sum(each.numel() for each in run.model.parameters()),
        "validation": None if best is None else best.val,
        "test": None if best is None else best.test,
    }
