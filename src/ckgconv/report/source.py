"""What a report is about: the runs, their predictions for each split, and the rows of the table behind them.

A graph of the data set is matched with the row of the table whose molecule has the same attributes and bonds, the first
such row that no other graph has: splits, folds and limits may be any.

Legend: K members, M rows of a split, T outputs, G graphs.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ckgconv.checks import InputError
from ckgconv.data.door import SPLITS
from ckgconv.data.molecule_table import table_molecules
from ckgconv.data.packed import PackedDataset
from ckgconv.data.tables import is_table, read_table
from ckgconv.engine.run import Run
from ckgconv.explanation.explainer import kind_of_output, output_names
from ckgconv.files import parse_json, read_text
from ckgconv.uncertainty import Uncertainty, fit, read_uncertainty
from ckgconv.uncertainty.fit import SplitOutcomes, split_outcomes

Values = NDArray[np.float64]
Array = NDArray[Any]


@dataclass(frozen=True)
class Predicted:
    """Predictions for the rows of a split next to their targets."""

    graphs: NDArray[np.int64]  # [M]
    values: Values  # [M, T] values, or probabilities
    deviation: Values | None  # [M, T] between several members
    target: Values  # [M, T], of classes [M, 1]; NaN: unknown

    def known(self, output: int) -> NDArray[np.bool_]:
        """[M] where the target of an output is known."""
        return np.isfinite(self.target[:, output])


@dataclass(frozen=True)
class TableRows:
    """Rows of a table of molecules."""

    path: Path
    rows: int
    smiles: dict[int, str]  # by graph of the data set
    left_out: list[tuple[int, str, str]]  # line, SMILES, reason
    unused: int  # valid rows that are in no split
    counts: dict[str, int] = field(default_factory=dict)  # of rows.json, which training writes beside the run


@dataclass(frozen=True)
class Source:
    """Runs that predict together, with all that a report shows of them."""

    runs: Sequence[Run]
    folder: Path
    splits: dict[str, Predicted]
    table: TableRows | None = None
    uncertainty: Uncertainty | None = None
    notes: list[str] = field(default_factory=list)  # sentences about what could not be shown

    @property
    def run(self) -> Run:
        return self.runs[0]

    @property
    def kind(self) -> str:
        """Of the targets: values, labels, classes, or mixed."""
        return self.run.learner.task.loss.targets

    @property
    def names(self) -> list[str]:
        """Of the outputs."""
        return output_names(self.run)

    @property
    def classes(self) -> list[str]:
        """Names of the classes, or their numbers."""
        given: Any = getattr(self.run.recipe.data, "classes", ())
        count = max(self.run.model.outputs, 2)
        return [str(each) for each in given[0]] if len(given) == 1 else [str(each) for each in range(count)]

    def kind_of(self, output: int) -> str:
        """Of one output; that of columns of several kinds differs."""
        return kind_of_output(self.run, output)

    @property
    def targets(self) -> str:
        """The columns that are predicted, or the name of the data."""
        return ", ".join(self.run.recipe.data.targets) or self.run.recipe.data.name

    @property
    def data(self) -> PackedDataset:
        return self.run.learner.data


def source_of(runs: Sequence[Run], folder: Path) -> Source:
    """Everything about runs that were opened with their data, or trained here."""
    notes: list[str] = []
    splits = {}
    for name in SPLITS:
        found = predicted_split(runs, name)
        if found is not None:
            splits[name] = found
    table = _table_rows(runs[0], folder, notes)
    uncertainty = _uncertainty(runs, folder, notes) if table is not None else None
    return Source(runs, folder, splits, table, uncertainty, notes)


def predicted_split(runs: Sequence[Run], split: str, outcomes: SplitOutcomes | None = None) -> Predicted | None:
    """Predictions for a split, of several runs their mean; None where the split is empty."""
    data = runs[0].learner.data
    if not len(data.target_rows(split)):
        return None
    found = outcomes or split_outcomes(runs, split)
    # A target of -1 is an unknown label or class, and a value like any other.
    labelled = [kind_of_output(runs[0], output) != "values" for output in range(found.target.shape[1])]
    target = np.where((found.target < 0) & np.array(labelled), np.nan, found.target)
    return Predicted(data.target_rows(split).sort().values.cpu().numpy(), found.values, found.deviation, target)


def _uncertainty(runs: Sequence[Run], folder: Path, notes: list[str]) -> Uncertainty | None:
    """What is kept beside the run; fitted here where nothing is."""
    try:
        kept = read_uncertainty(folder)
        return fit(runs) if kept is None or kept.members != len(runs) else kept
    except InputError as error:
        notes.append(f"Intervals and calibration are left out: {error}")
        return None


def _table_rows(run: Run, folder: Path, notes: list[str]) -> TableRows | None:
    """The rows of the run's table; None where its data is none."""
    recipe = run.recipe.data
    given = run.record.data is not None and run.record.data.given
    if given or not is_table(recipe.name) or not recipe.targets:
        return None
    try:
        table = read_table(Path(recipe.name), recipe.most_atoms)
        texts = table.column(recipe.smiles)
        molecules, reasons = table_molecules(table, recipe.smiles, recipe.most_atoms)
    except InputError as error:
        notes.append(f"Molecules are left out: {error}")
        return None
    places: dict[bytes, list[int]] = defaultdict(list)
    for row, molecule in enumerate(molecules):
        if molecule is not None:
            places[_key(molecule.x, molecule.edge_index, molecule.edge_attr)].append(row)
    smiles, used = {}, set()
    for graph, key in enumerate(_keys(run.learner.data)):
        if places[key]:
            row = places[key].pop(0)
            smiles[graph] = texts[row].strip()
            used.add(row)
    numbered = zip(table.lines, texts, reasons, strict=True)
    left_out = [(line, text, reason) for line, text, reason in numbered if reason]
    unused = len(texts) - len(used) - len(left_out)
    return TableRows(table.path, len(texts), smiles, left_out, unused, _counts(folder))


def _counts(folder: Path) -> dict[str, int]:
    """What rows.json counts; nothing where there is none."""
    try:
        found = parse_json(read_text(folder / "rows.json", "train again."))
    except InputError:
        return {}
    pairs = found.items() if isinstance(found, dict) else ()
    return {name: count for name, count in pairs if isinstance(name, str) and isinstance(count, int)}


def _key(x: Array, edge_index: Array, edge_attr: Array) -> bytes:
    parts = (x, edge_index.astype(np.int64), edge_attr)
    return b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)


def _keys(data: PackedDataset) -> list[bytes]:
    data = data.to(torch.device("cpu"))
    assert data.edge_attr is not None
    x, edge_index, edge_attr = data.x.numpy(), data.edge_index.numpy(), data.edge_attr.numpy()
    nodes, edges = data.node_ptr.tolist(), data.edge_ptr.tolist()
    keys = []
    for graph in range(data.num_graphs):
        own = slice(edges[graph], edges[graph + 1])
        keys.append(_key(x[nodes[graph] : nodes[graph + 1]], edge_index[:, own], edge_attr[own]))
    return keys


def repeated(smiles: Sequence[str]) -> int:
    """How many molecules, by canonical SMILES, are those of an earlier row."""
    from rdkit import Chem

    counts = Counter(Chem.MolToSmiles(molecule) for text in smiles if (molecule := Chem.MolFromSmiles(text)))
    return sum(counts.values()) - len(counts)
