"""`ckgconv predict RUN DATA`: the molecules of a CSV with their predictions, or the predictions for a data set."""

import csv
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from ckgconv.checks import require
from ckgconv.cli import processes
from ckgconv.data import load
from ckgconv.data.tables import Table, read_table
from ckgconv.engine.predict import Predictions, predict_smiles
from ckgconv.engine.predict_packed import PackedPredictions, predict_packed
from ckgconv.engine.run import Run, open_network
from ckgconv.files import write_whole
from ckgconv.recipe import DataRecipe


def predict_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    data: Annotated[
        str, typer.Argument(metavar="DATA", help="A CSV with a column of SMILES, a named data set or a packed .npz.")
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="CSV to write.")] = Path("predictions.csv"),
    smiles: Annotated[str | None, typer.Option(help="CSV: column of the SMILES, by default as in training.")] = None,
    with_features: Annotated[
        bool, typer.Option("--embed", help="Add the features that the head reads, of each molecule, graph or node.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict the molecules of a CSV, with a reason for each invalid one; or all graphs or nodes of a data set."""
    given = Path(data)
    if given.suffix.lower() == ".csv":
        summary = _predict_table(folder, given, out, smiles, with_features, device, as_json)
    else:
        require(smiles is None, f"--smiles belongs to a CSV, not to {data!r}: leave it out.")
        summary = _predict_data(folder, data, data_dir, out, with_features, device, as_json)
    if not processes.is_first():
        return
    if as_json:
        print(json.dumps({"out": str(out), **summary}))
        return
    Console().print(f"{summary['predicted']} of {summary['rows']} rows predicted, {summary['invalid']} invalid: {out}")


def _predict_table(
    folder: Path, given: Path, out: Path, smiles: str | None, with_features: bool, device: str, quiet: bool
) -> dict[str, int]:
    table = read_table(given)
    require(not (out.exists() and out.samefile(given)), f"{out} is the input: choose another file with -o.")
    run = open_network(folder, device)
    column = table.column(smiles or run.recipe.data.smiles)
    with Progress(console=Console(stderr=True), disable=quiet or not processes.is_first()) as progress:
        task = progress.add_task("predicting", total=len(column))
        found = predict_smiles(run, column, lambda count: progress.update(task, advance=count))
    if processes.is_first():
        write_whole(out, lambda part: _write_table(part, table, run, found, with_features))
    invalid = sum(1 for reason in found.reasons if reason)
    return {"rows": len(column), "predicted": len(column) - invalid, "invalid": invalid}


def _predict_data(
    folder: Path, name: str, data_dir: Path | None, out: Path, with_features: bool, device: str, quiet: bool
) -> dict[str, int]:
    run = open_network(folder, device)
    graphs = load(DataRecipe(name), data_dir)
    with Progress(console=Console(stderr=True), disable=quiet or not processes.is_first()) as progress:
        task = progress.add_task("predicting", total=graphs.num_graphs)
        found = predict_packed(run, graphs, lambda count: progress.update(task, advance=count))
    if processes.is_first():
        write_whole(out, lambda part: _write_packed(part, run, found, with_features))
    return {"rows": len(found.graph), "predicted": len(found.graph), "invalid": 0}


def output_names(run: Run) -> list[str]:
    """Names of the columns with predictions."""
    outputs = run.recipe.model.head.outputs
    unnamed = ["prediction"] if outputs == 1 else [f"prediction{index}" for index in range(outputs)]
    return [f"{name}_predicted" for name in run.recipe.data.targets] or unnamed


def _write_table(path: Path, table: Table, run: Run, found: Predictions, embed: bool) -> None:
    names, width = output_names(run), run.recipe.model.width
    added = [*names, "reason", *(f"embedding{index}" for index in range(width if embed else 0))]
    kept = [index for index, name in enumerate(table.columns) if name not in added]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(table.columns[index] for index in kept), *added])
        for cells, value, embedding, reason in zip(
            table.rows, found.values, found.embeddings, found.reasons, strict=True
        ):
            predicted = [""] * len(names) if value is None else [repr(each) for each in value]
            features = ([""] * width if embedding is None else [repr(each) for each in embedding]) if embed else []
            writer.writerow([*(cells[index] for index in kept), *predicted, reason, *features])


def _write_packed(path: Path, run: Run, found: PackedPredictions, with_features: bool) -> None:
    columns: dict[str, list[int] | list[float]] = {"graph": found.graph.tolist()}
    if found.node is not None:
        columns["node"] = found.node.tolist()
    if found.classes is not None:
        columns["class"] = found.classes.tolist()
    columns |= dict(zip(output_names(run), found.values.T.tolist(), strict=True))
    if with_features:
        columns |= {f"embedding{index}": values for index, values in enumerate(found.embeddings.T.tolist())}
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows(zip(*columns.values(), strict=True))
