"""The folder of an exported network.

model.pt2, model.onnx    the network, by `torch.export` and as ONNX
featuriser.json          vocabularies, coordinates, support, scale and outputs
predict.py               from SMILES to predictions, with rdkit, numpy and one of torch and onnxruntime
README.md                what it is, how to use it, and how far it differs from what was exported
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ckgconv.checks import check_choice, require
from ckgconv.engine.compatible import check_together
from ckgconv.engine.run import Run
from ckgconv.exporting import standalone
from ckgconv.exporting.comparison import MOLECULES, example_features, expected_rows, largest_difference
from ckgconv.exporting.featuriser import outputs, shared_tables
from ckgconv.exporting.formats import exported_program, write_onnx, write_torch
from ckgconv.exporting.network import input_names, result_names
from ckgconv.files import valid_json, write_text

Format = Literal["torch", "onnx", "both"]


@dataclass(frozen=True)
class Exported:
    """What was written, and how it compares with the runs on molecules."""

    folder: Path
    molecules: int
    torch: float | None  # largest difference of model.pt2; None where it was not asked for
    onnx: float | None


def export_runs(runs: Sequence[Run], folder: Path, format: Format = "both") -> Exported:
    """Write the network of a run, or those of several as one, and compare it in a process without this package."""
    check_choice("format", format, get_args(Format))
    require(
        not folder.exists() or (folder.is_dir() and not any(folder.iterdir())),
        f"{folder} is not empty: choose another.",
    )
    if len(runs) > 1:
        check_together(runs)
    tables, program = shared_tables(runs), exported_program(runs)
    write_text(folder / "featuriser.json", valid_json(tables, indent=1))
    write_text(folder / "predict.py", Path(standalone.__file__).read_text(encoding="utf-8"))
    differences: dict[str, float] = {}
    if format in ("torch", "both"):
        write_torch(program, folder / "model.pt2")
        differences["torch"] = largest_difference(runs, folder, onnx=False)
    if format in ("onnx", "both"):
        write_onnx(program, folder / "model.onnx", input_names(runs[0]), result_names(runs))
        differences["onnx"] = largest_difference(runs, folder, onnx=True)
    known = expected_rows(runs, MOLECULES, example_features(runs[0], len(MOLECULES)))
    count = sum(each is not None for each in known)
    done = Exported(folder, count, differences.get("torch"), differences.get("onnx"))
    write_text(folder / "README.md", readme(runs, done))
    return done


def readme(runs: Sequence[Run], done: Exported) -> str:
    """README.md of an exported folder."""
    run, rows = runs[0], []
    if done.torch is not None:
        rows.append(f"| `model.pt2` | `pip install torch numpy rdkit` | `python predict.py CCO` | {done.torch:.2e} |")
    if done.onnx is not None:
        use = "`python predict.py --onnx CCO`"
        rows.append(f"| `model.onnx` | `pip install onnxruntime numpy rdkit` | {use} | {done.onnx:.2e} |")
    formats = "\n".join(rows)
    beside = _beside(run.recipe.data.features)
    networks = "A network of molecules" if len(runs) == 1 else f"{len(runs)} networks of molecules in one"
    seeds = "; ".join(
        f"recipe {each.recipe.name!r}, seed {each.record.seed}, commit {each.record.commit or 'unknown'}"
        for each in runs
    )
    return f"""# {run.recipe.name}, exported

{networks} that ckgconv trained ({seeds}). ckgconv is not needed to run it.

| file | needs | use | largest difference from what was exported |
|---|---|---|---|
{formats}

The difference is over {done.molecules} molecules, predicted by `predict.py` in a process that could not import ckgconv.

`predict.py` reads SMILES as arguments or from standard input, one per line; `--json` prints predictions, and reasons
where a molecule cannot be read. In Python: `from predict import predict; predict(["CCO"])`. `featuriser.json` has the
vocabularies of atoms and bonds, the steps of the random walks, the support, the scale of the targets, which is already
part of the network, and the inputs and outputs in order.
{beside}
| output | meaning |
|---|---|
{_columns(runs)}
"""


def _columns(runs: Sequence[Run]) -> str:
    """Rows of a table: what is predicted, in order."""
    named = [(each["name"], each["meaning"]) for each in outputs(runs[0])]
    if len(runs) > 1:
        named = [(name, f"{meaning}, mean of {len(runs)} networks") for name, meaning in named] + [
            (f"{name}_deviation", "standard deviation between the networks") for name, _ in named
        ]
    return "\n".join(f"| {name} | {meaning} |" for name, meaning in named)


def _beside(names: Sequence[str]) -> str:
    """How values of own columns are given; "" where the network reads none."""
    if not names:
        return ""
    values = ["1.5"] * len(names)
    return f"""
The network reads {", ".join(names)} beside each molecule, in this order and in the units of the table. A line or an
argument is a SMILES and their values, separated by spaces, `nan` where one is unknown:
`python predict.py "CCO {" ".join(values)}"`. In Python: `predict(["CCO"], features=[[{", ".join(values)}]])`.
"""
