"""featuriser.json: how runs read molecules, as tables that `standalone` needs in place of this package."""

from collections.abc import Sequence
from typing import Any

from ckgconv.checks import InputError
from ckgconv.data import molecules
from ckgconv.data.descriptors import DESCRIPTORS, LARGEST
from ckgconv.engine.compatible import name_of
from ckgconv.engine.output_names import output_names
from ckgconv.engine.predict_molecules import featuriser_of
from ckgconv.engine.run import Run
from ckgconv.exporting.network import input_names
from ckgconv.tasks.mixed import MixedLoss

FORMAT = 1
MEANINGS = {"values": "value", "labels": "probability of 1", "classes": "probability of the class"}


def shared_tables(runs: Sequence[Run]) -> dict[str, Any]:
    """The tables by which all of the runs read molecules; of several the scales of the targets are a list."""
    tables = [featuriser_tables(run) for run in runs]
    if len(tables) == 1:
        return tables[0]
    scales = [each.pop("scale") for each in tables]
    for run, other in zip(runs, tables, strict=True):
        apart = [name.replace("_", " ") for name, value in other.items() if value != tables[0][name]]
        if apart:
            raise InputError(
                f"{name_of(runs[0])} and {name_of(run)} read molecules in different ways ({', '.join(apart)}), and "
                f"members that are exported as one read the same inputs: export them one by one."
            )
    return {**tables[0], "members": len(runs), "scales": scales}


def featuriser_tables(run: Run) -> dict[str, Any]:
    """Vocabularies, coordinates, support, inputs and outputs of a run."""
    recipe, kind = run.recipe, featuriser_of(run)
    atoms, bonds = _zinc(recipe.model.node.sizes[0]) if kind == "zinc" else _molecule()
    support = recipe.model.support
    return {
        "format": FORMAT,
        "featuriser": kind,
        "kekulise": kind == "zinc",
        "most_atoms": recipe.data.most_atoms,
        "atoms": atoms,
        "bonds": bonds,
        "coordinates": {
            "name": recipe.model.encoding,
            "steps": recipe.model.steps,
            "support": "global" if support == "sparse_global" else support,
        },
        "descriptors": _descriptors(run),
        "features": list(recipe.data.features),
        "inputs": input_names(run),
        "outputs": outputs(run),
        "scale": {"mean": run.learner.scale.mean.tolist(), "spread": run.learner.scale.spread.tolist()},
    }


def _descriptors(run: Run) -> dict[str, Any] | None:
    """Names of RDKit's descriptors in order, and the largest value that counts; None where the network reads none."""
    if run.recipe.data.descriptors == "none":
        return None
    return {"names": list(DESCRIPTORS), "largest": LARGEST}


def outputs(run: Run) -> list[dict[str, str]]:
    """Name and meaning of each column of the predictions; the scale of the targets is already part of the program."""
    loss = run.learner.task.loss
    kinds = (
        [column.targets for column in loss.columns for _ in range(column.outputs)]
        if isinstance(loss, MixedLoss)
        else []
    )
    kinds = kinds or [loss.targets] * run.model.outputs
    return [
        {"name": name, "meaning": MEANINGS[kind]} for name, kind in zip(output_names(run.recipe), kinds, strict=True)
    ]


def _column(name: str, values: Any, first: int = 0, unknown: bool = True) -> dict[str, Any]:
    """A column of attributes: the place of a value in `values`, counted from `first`."""
    return {"name": name, "values": list(values), "first": first, "unknown": unknown}


def _molecule() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The columns of `data.molecules`, in its order."""
    atoms = [
        _column("atomic_number", range(1, 119)),
        _column("chirality", molecules.CHIRALITY),
        _column("degree", range(11)),
        _column("charge", range(-5, 6)),
        _column("hydrogens", range(9)),
        _column("radical_electrons", range(5)),
        _column("hybridisation", molecules.HYBRIDISATION),
        _column("aromatic", (False, True)),
        _column("in_ring", (False, True)),
    ]
    bonds = [
        _column("type", molecules.BOND_TYPES),
        _column("stereo", molecules.BOND_STEREO[:-1]),
        _column("conjugated", (False, True)),
    ]
    return atoms, bonds


def _zinc(types: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """One column each; the first `types` of ZINC's atom types are those that the network embeds."""
    names = sorted(molecules.ZINC_BONDS, key=lambda name: molecules.ZINC_BONDS[name])
    atoms = [_column("zinc_type", molecules.ZINC_ATOMS[:types], unknown=False)]
    return atoms, [_column("type", names, first=molecules.ZINC_BONDS[names[0]], unknown=False)]
