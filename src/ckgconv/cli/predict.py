"""`ckgconv predict RUN molecules.csv`: the table again, with predictions."""

import csv
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import Progress

from ckgconv.checks import require
from ckgconv.data.tables import Table, read_table
from ckgconv.engine.predict import Predictions, predict_smiles
from ckgconv.engine.run import Run, open_network
from ckgconv.files import write_whole


def predict_command(
    folder: Annotated[Path, typer.Argument(metavar="RUN", help="Folder of a run.")],
    molecules: Annotated[Path, typer.Argument(metavar="CSV", help="A CSV with a column of SMILES.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="CSV to write.")] = Path("predictions.csv"),
    smiles: Annotated[str | None, typer.Option(help="Column of the SMILES, by default that of the training.")] = None,
    embed: Annotated[bool, typer.Option("--embed", help="Add the pooled features of each molecule.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict the molecules of a CSV; invalid ones get an empty prediction and a reason."""
    table = read_table(molecules)
    require(not (out.exists() and out.samefile(molecules)), f"{out} is the input: choose another file with -o.")
    run = open_network(folder, device)
    column = table.column(smiles or run.recipe.data.smiles)
    with Progress(console=Console(stderr=True), disable=as_json) as progress:
        task = progress.add_task("predicting", total=len(column))
        found = predict_smiles(run, column, lambda count: progress.update(task, advance=count))
    write_whole(out, lambda part: _write(part, table, run, found, embed))
    invalid = sum(1 for reason in found.reasons if reason)
    if as_json:
        print(
            json.dumps({"out": str(out), "rows": len(column), "predicted": len(column) - invalid, "invalid": invalid})
        )
        return
    Console().print(f"{len(column) - invalid} of {len(column)} rows predicted, {invalid} invalid: {out}")


def output_names(run: Run) -> list[str]:
    """What the predicted columns are called."""
    outputs = run.recipe.model.head.outputs
    unnamed = ["prediction"] if outputs == 1 else [f"prediction{place}" for place in range(outputs)]
    return [f"{name}_predicted" for name in run.recipe.data.targets] or unnamed


def _write(path: Path, table: Table, run: Run, found: Predictions, embed: bool) -> None:
    names, width = output_names(run), run.recipe.model.width
    added = [*names, "reason", *(f"embedding{place}" for place in range(width if embed else 0))]
    kept = [place for place, name in enumerate(table.columns) if name not in added]
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*(table.columns[place] for place in kept), *added])
        for cells, value, embedding, reason in zip(
            table.rows, found.values, found.embeddings, found.reasons, strict=True
        ):
            predicted = [""] * len(names) if value is None else [repr(each) for each in value]
            features = ([""] * width if embedding is None else [repr(each) for each in embedding]) if embed else []
            writer.writerow([*(cells[place] for place in kept), *predicted, reason, *features])
