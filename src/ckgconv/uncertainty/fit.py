"""What is fitted after training: intervals or calibrations on validation rows, and the applicability domain.

The epoch of each network was chosen by the same validation rows, so both are a little too confident; `judged` measures
them on rows that chose nothing.

Legend: K members, M rows, T outputs.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from ckgconv.checks import InputError
from ckgconv.data import CATALOGUE, PackedDataset
from ckgconv.data.fingerprints import fingerprint
from ckgconv.data.molecules import Molecule, parse_smiles
from ckgconv.data.tables import read_molecules, read_table
from ckgconv.engine.ensemble import MemberOutcomes, member_outcomes
from ckgconv.engine.output_names import class_columns
from ckgconv.engine.predict_molecules import reading_of
from ckgconv.engine.run import Run
from ckgconv.tasks.mixed import Column, MixedLoss, class_of
from ckgconv.uncertainty.applicability import Applicability, fitted_applicability
from ckgconv.uncertainty.calibration import Calibration, calibrate_classes, calibrate_labels
from ckgconv.uncertainty.intervals import Scores, Values, fitted_scores
from ckgconv.uncertainty.kept import Uncertainty
from ckgconv.uncertainty.outputs import output_names


@dataclass(frozen=True)
class SplitOutcomes:
    """What the members say of the rows of a split, together."""

    values: Values  # [M, T] mean
    deviation: Values | None  # [M, T] between several members
    target: NDArray[np.float64]  # [M, T]; of classes [M, 1]


def split_outcomes(runs: Sequence[Run], split: str) -> SplitOutcomes:
    """Of runs that were opened with their data."""
    return together(member_outcomes(runs, split))


def together(found: MemberOutcomes) -> SplitOutcomes:
    """Mean and deviation of what the members say."""
    deviation = found.std.numpy() if len(found.members) > 1 else None
    target = found.target.double().numpy()
    return SplitOutcomes(found.mean.numpy(), deviation, target.reshape(len(target), -1))


def fit(runs: Sequence[Run]) -> Uncertainty:
    """Of one run or the members of an ensemble, trained or opened with their data."""
    kind, names = runs[0].learner.task.loss.targets, output_names(runs[0])
    applicability = training_domain(runs)
    found = split_outcomes(runs, "val")
    loss = runs[0].learner.task.loss
    if isinstance(loss, MixedLoss):
        titles = {start: target for target, (start, _) in class_columns(runs[0].recipe).items()}
        fitted = [_of_column(column, titles.get(column.start, names[column.start]), found) for column in loss.columns]
        return Uncertainty(
            len(runs),
            names,
            scores=tuple(score for each in fitted for score in each.scores),
            calibrations=tuple(calibration for each in fitted for calibration in each.calibrations),
            notes=tuple(each.note for each in fitted if each.note),
            applicability=applicability,
        )
    if kind == "values":
        scores = tuple(fitted_scores(found.values, found.target, found.deviation))
        return Uncertainty(len(runs), names, scores=scores, applicability=applicability)
    calibrations, notes = _calibrations(kind, names, found)
    return Uncertainty(len(runs), names, calibrations=calibrations, notes=notes, applicability=applicability)


@dataclass(frozen=True)
class FittedColumn:
    """Of one column among others of several kinds, for each of its outputs."""

    scores: Sequence[Scores | None]
    calibrations: Sequence[Calibration | None]
    note: str = ""  # why a probability was not calibrated


def _of_column(column: Column, name: str, found: SplitOutcomes) -> FittedColumn:
    values, target = found.values[:, column.places], found.target[:, column.places]
    nothing = [None] * column.outputs
    if column.targets == "values":
        deviation = None if found.deviation is None else found.deviation[:, column.places]
        return FittedColumn(fitted_scores(values, target, deviation), nothing)
    if column.targets == "labels":
        calibration = calibrate_labels(values[:, 0], target[:, 0])
    else:
        calibration = calibrate_classes(values, class_of(torch.from_numpy(target)).numpy())
    if isinstance(calibration, str):
        return FittedColumn(nothing, nothing, f"{name}: {calibration}")
    return FittedColumn(nothing, [calibration] * column.outputs)


def _calibrations(
    kind: str, names: Sequence[str], found: SplitOutcomes
) -> tuple[tuple[Calibration | None, ...], tuple[str, ...]]:
    if kind == "classes" and found.values.shape[1] > 1:
        outcomes = {"": calibrate_classes(found.values, found.target[:, 0].astype(np.int64))}
    else:
        columns = zip(names, found.values.T, found.target.T, strict=True)
        outcomes = {name: calibrate_labels(values, target) for name, values, target in columns}
    notes = [f"{name}: {why}" if name else why for name, why in outcomes.items() if isinstance(why, str)]
    return tuple(None if isinstance(each, str) else each for each in outcomes.values()), tuple(notes)


def training_domain(runs: Sequence[Run]) -> Applicability | None:
    """Of the training molecules of a table; None where the data is not a table of SMILES."""
    recipe, data = runs[0].recipe.data, runs[0].learner.data
    given = runs[0].record.data is not None and runs[0].record.data.given
    if given or not recipe.targets or recipe.name in CATALOGUE or not Path(recipe.name).is_file():
        return None
    try:
        smiles = read_table(Path(recipe.name)).column(recipe.smiles)
        featuriser, most_atoms = reading_of(runs)
    except InputError:
        return None
    molecules, _ = read_molecules(smiles, featuriser, most_atoms)
    # By their graphs: whatever rows were left out and however the others were split, a graph has a SMILES.
    by_graph = {_key(each): text for each, text in zip(molecules, smiles, strict=True) if each is not None}
    found = [text for key in _training_keys(data) if (text := by_graph.get(key)) is not None]
    parsed = [parse_smiles(text, most_atoms) for text in found]
    return fitted_applicability([fingerprint(each) for each in parsed], [text.strip() for text in found])


def _training_keys(data: PackedDataset) -> list[bytes]:
    data = data.to(torch.device("cpu"))
    keys = []
    for graph in data.train.tolist():
        nodes = slice(*data.node_ptr[graph : graph + 2].tolist())
        edges = slice(*data.edge_ptr[graph : graph + 2].tolist())
        assert data.edge_attr is not None
        parts = data.x[nodes].numpy(), data.edge_index[:, edges].numpy(), data.edge_attr[edges].numpy()
        keys.append(_digest(*parts))
    return keys


def _key(molecule: Molecule) -> bytes:
    return _digest(molecule.x, molecule.edge_index, molecule.edge_attr)


def _digest(*arrays: NDArray[np.generic]) -> bytes:
    found = hashlib.sha256()
    for array in arrays:
        found.update(np.ascontiguousarray(array, dtype=np.int32).tobytes())
    return found.digest()
