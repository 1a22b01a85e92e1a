"""Explain the prediction for a molecule: what each atom and bond contributes.

    from ckgconv import explain, open_run

    found = explain(open_run("runs/logp-seed0"), "CCO")
    found.atoms, found.bonds, found.baseline, found.prediction, found.residual

Regression is explained in the units of the table, labels and classes by their logits (log-odds), which are sums where
probabilities are not. Of several runs all numbers are means over the runs.

Legend: n atoms, b bonds.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from ckgconv.checks import InputError, check_choice, require
from ckgconv.data.molecules import read_smiles
from ckgconv.data.packed import PackedDataset
from ckgconv.data.tables import pack_molecules
from ckgconv.engine.members import member_folders
from ckgconv.engine.opened import open_network
from ckgconv.engine.output_names import class_columns
from ckgconv.engine.predict_molecules import featuriser_of, predict_smiles
from ckgconv.engine.run import Run
from ckgconv.explanation.inputs import Inputs, network_of
from ckgconv.explanation.methods import ADDS_UP, METHODS, Method, contributions
from ckgconv.registry import nearest

# Of Σ |contributions|: where the integral of a network with kinks is less exact, its sum is not said to add up.
LARGEST_ERROR = 0.01
ROUNDING = 1e-6
Runs = Run | Path | str | Sequence[Run | Path | str]


@dataclass(frozen=True)
class Explanation:
    """Contributions to one prediction; atoms and bonds are numbered as rdkit numbers those of the SMILES, from 0."""

    smiles: str
    target: str
    unit: str  # of all numbers below
    method: Method
    atoms: tuple[float, ...]  # [n]
    bonds: tuple[float, ...]  # [b]
    ends: tuple[tuple[int, int], ...]  # [b] the atoms of each bond
    baseline: float  # the prediction at the baseline, `inputs`
    prediction: float
    residual: float  # prediction - baseline - Σ contributions
    descriptors: float = 0.0  # share of what the readout knows of the whole molecule, where it reads any
    features: dict[str, float] = field(default_factory=dict)  # of the user's own columns, by name
    members: int = 1

    @property
    def adds_up(self) -> bool:
        """Whether Σ contributions = prediction - baseline by the method, and the residual is no more than its error."""
        size = sum(map(abs, (*self.atoms, *self.bonds, self.descriptors, *self.features.values())))
        return self.method in ADDS_UP and abs(self.residual) <= LARGEST_ERROR * size + ROUNDING

    @property
    def total(self) -> float:
        """Σ contributions."""
        return sum(self.atoms) + sum(self.bonds) + self.descriptors + sum(self.features.values())

    @property
    def per_atom(self) -> tuple[float, ...]:
        """[n] with half of each bond: all contributions but those of the whole molecule, by atom."""
        values = list(self.atoms)
        for (i, j), value in zip(self.ends, self.bonds, strict=True):
            values[i] += value / 2
            values[j] += value / 2
        return tuple(values)

    def sentence(self) -> str:
        """Whether the contributions add up, with the residual."""
        difference = self.prediction - self.baseline
        given = f"{self.total:+.4f} of {difference:+.4f}, prediction minus baseline; residual {self.residual:+.1e}"
        if self.adds_up:
            return f"The contributions add up: {given}."
        return f"The contributions do not add up ({self.method}): {given}."


class Explainer:
    """Explains one output of one or several runs, molecule by molecule.

    Args:
        runs: a run, its folder or that of an ensemble, the name of a trained network, or several of them.
        target: number or name of the output; of a column of classes, the class that is most probable for each
            molecule. By default the first target.
        method: see `methods`.
    """

    def __init__(self, runs: Runs, target: int | str | None = None, method: Method = "integrated_gradients") -> None:
        given = runs if isinstance(runs, Sequence) and not isinstance(runs, str) else [runs]
        require(len(given) > 0, "No run was given: give a run to explain.")
        self.runs = [run for each in given for run in _opened(each)]
        check_choice("method", method, METHODS)
        self.outputs, self.method = outputs_of(self.runs[0], target), method
        for run in self.runs[1:]:
            require(
                run.recipe.data.features == self.columns,
                f"{run.folder} reads other columns than {self.runs[0].folder}: explain runs that read the same.",
            )
            require(
                run.recipe.data.targets == self.runs[0].recipe.data.targets and run.model.outputs >= self.outputs.stop,
                f"{run.folder} predicts other targets than {self.runs[0].folder}: explain runs of the same targets.",
            )
        self.networks = [network_of(run) for run in self.runs]
        self._last: tuple[tuple[object, ...], PackedDataset] | None = None  # how a molecule was read, and the molecule

    @property
    def columns(self) -> tuple[str, ...]:
        """The user's own columns that the runs read beside each molecule."""
        return self.runs[0].recipe.data.features

    def __call__(self, smiles: str, features: Sequence[float] | None = None) -> Explanation:
        """Explain the prediction for a molecule; one that cannot be predicted raises InputError.

        `features` are the values of `columns`, NaN where unknown.
        """
        target = self.outputs[0] if len(self.outputs) == 1 else self._most_probable(smiles, features)
        members = [self._one(member, smiles, features, target) for member in range(len(self.runs))]
        return members[0] if len(members) == 1 else mean_of(members)

    def inputs(
        self, smiles: str, member: int = 0, features: Sequence[float] | None = None, target: int | None = None
    ) -> Inputs:
        """The prediction of one run as a function of the embedded molecule; of the first output where none is named."""
        run = self.runs[member]
        molecule = self._read(run, smiles, tuple(map(float, features or ())))
        known = bool((molecule.x < torch.tensor(run.recipe.model.node.sizes)).all())
        output = self.outputs[0] if target is None else target
        require(known, f"{smiles!r} has an atom of a type that does not occur in the training data.")
        return Inputs(self.networks[member], run, molecule, output)

    def _read(self, run: Run, smiles: str, values: tuple[float, ...]) -> PackedDataset:
        """A data set of one molecule; members read it in the same way, one after the other."""
        featuriser, recipe = featuriser_of(run), run.recipe.data
        # Compared, not hashed: a recipe from Python may have lists.
        how, last = (smiles, featuriser, recipe, values), self._last
        if last is None or last[0] != how:
            molecule = replace(read_smiles(smiles, featuriser, recipe.most_atoms), values=values)
            last = self._last = how, pack_molecules([molecule], recipe=recipe)
        return last[1]

    def _most_probable(self, smiles: str, features: Sequence[float] | None) -> int:
        """The class with the largest mean probability; the first one where the molecule cannot be predicted."""
        given = None if features is None else [features]
        rows = [predict_smiles(run, smiles, features=given).values[0] for run in self.runs]
        return max(self.outputs, key=lambda output: sum(row[output] for row in rows if row is not None))

    def _one(self, member: int, smiles: str, features: Sequence[float] | None, target: int) -> Explanation:
        run, inputs = self.runs[member], self.inputs(smiles, member, features, target)
        found = contributions(inputs, self.method)
        values = found.units.tolist()
        whole = values[inputs.atoms + inputs.bonds :]
        edges = inputs.molecule.edge_index[:, ::2].T.tolist()
        return Explanation(
            smiles=smiles,
            target=output_names(run)[target],
            unit=unit_of(run, target),
            method=self.method,
            atoms=tuple(values[: inputs.atoms]),
            bonds=tuple(values[inputs.atoms : inputs.atoms + inputs.bonds]),
            ends=tuple((i, j) for i, j in edges),
            baseline=found.baseline,
            prediction=found.prediction,
            residual=found.residual,
            descriptors=whole[0] if inputs.has_descriptors else 0.0,
            features=dict(zip(self.columns, whole[int(inputs.has_descriptors) :], strict=True)),
        )


def explain(
    runs: Runs,
    smiles: str,
    target: int | str | None = None,
    method: Method = "integrated_gradients",
    features: Sequence[float] | None = None,
) -> Explanation:
    """What each atom and bond of a molecule contributes to a prediction; for many molecules build an `Explainer`."""
    return Explainer(runs, target, method)(smiles, features)


def _opened(what: Run | Path | str) -> list[Run]:
    return [what] if isinstance(what, Run) else [open_network(folder) for folder in member_folders(what)]


def mean_of(members: Sequence[Explanation]) -> Explanation:
    """All numbers as means over explanations of the same molecule."""
    count = len(members)

    def mean(name: str) -> float:
        return sum(getattr(each, name) for each in members) / count

    return replace(
        members[0],
        atoms=tuple(sum(values) / count for values in zip(*(each.atoms for each in members), strict=True)),
        bonds=tuple(sum(values) / count for values in zip(*(each.bonds for each in members), strict=True)),
        baseline=mean("baseline"),
        prediction=mean("prediction"),
        residual=mean("residual"),
        descriptors=mean("descriptors"),
        features={name: sum(each.features[name] for each in members) / count for name in members[0].features},
        members=count,
    )


def outputs_of(run: Run, target: int | str | None) -> range:
    """The output of a number or name, or those of a column of classes; None is the first target."""
    columns = {name: range(start, start + len(classes)) for name, (start, classes) in class_columns(run.recipe).items()}
    if isinstance(target, str) and target in columns:
        return columns[target]
    if target is not None:
        output = output_of(run, target)
        return range(output, output + 1)
    named = run.recipe.data.targets[:1]
    if named and named[0] in columns:
        return columns[named[0]]
    return range(run.model.outputs if kind_of_output(run, 0) == "classes" else 1)


def output_of(run: Run, target: int | str) -> int:
    """The number of an output, from its number or name."""
    names, outputs = output_names(run), run.model.outputs
    if isinstance(target, str) and target in names:
        return names.index(target)
    if isinstance(target, str) and target.isdecimal():
        target = int(target)
    if isinstance(target, str):
        hint = nearest(target, names) if run.recipe.data.targets else f"give a number from 0 to {outputs - 1}."
        raise InputError(f"The run has no target {target!r}: {hint}")
    require(0 <= target < outputs, f"The target is number {target}: give one from 0 to {outputs - 1}.")
    return target


def output_names(run: Run) -> list[str]:
    """The columns of the table, one name for each class of those that have classes; or "output N"."""
    data, outputs = run.recipe.data, run.model.outputs
    classes = getattr(data, "classes", ()) or ((),) * len(data.targets)
    pairs = zip(data.targets, classes, strict=False)
    named = [each for name, own in pairs for each in ([f"{name} = {one}" for one in own] or [name])]
    return named if len(named) == outputs else [f"output {number}" for number in range(outputs)]


def kind_of_output(run: Run, target: int) -> str:
    """Whether an output is a value, a label or a class; of columns of several kinds, a class is a label of its own."""
    loss = run.learner.task.loss
    for column in getattr(loss, "columns", ()):
        if column.start <= target < column.start + column.outputs:
            return "values" if column.targets == "values" else "labels"
    return loss.targets


def unit_of(run: Run, target: int) -> str:
    """What contributions are measured in."""
    name, kind = output_names(run)[target], kind_of_output(run, target)
    if kind == "values":
        return name
    return f"logit of {name}" if kind == "classes" and run.model.outputs > 1 else f"log-odds of {name}"
