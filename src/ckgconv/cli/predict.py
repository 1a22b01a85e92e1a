"""`ckgconv predict RUN … DATA`: the molecules of a CSV with their predictions, or the predictions for a data set.

Several runs predict together: the mean over them, with its standard deviation and the median next to it.
"""

import csv
import json
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.predictions import Columns, OneRun, SeveralRuns, predictor
from ckgconv.data import load
from ckgconv.data.molecule_table import feature_rows
from ckgconv.data.spreadsheet import as_text
from ckgconv.data.tables import Table, is_table, read_table
from ckgconv.engine.trained import TRAINED
from ckgconv.files import check_names_file, write_output
from ckgconv.recipe import DataRecipe


def predict_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Folder of a run, or one of {', '.join(TRAINED)}; several: an ensemble."
        ),
    ],
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
    """Predict the molecules of a CSV, with a reason for each invalid one; or all graphs or nodes of a data set.

    Several runs predict their mean, with columns NAME_std and NAME_median for what the members say.
    """
    check_names_file(out)
    given = Path(data)
    is_run = (given / "recipe.json").exists()
    require(not is_run, f"{data} is a run, but the last argument is the data to predict: add a CSV or a data set.")
    if is_table(given):
        table = read_table(given)
        require(not (out.exists() and out.samefile(given)), f"{out} is the input: choose another file with -o.")
        summary = _predict_table(predictor(folders, device, with_features), table, out, smiles, as_json)
    else:
        require(smiles is None, f"--smiles belongs to a CSV, not to {data!r}: leave it out.")
        summary = _predict_data(predictor(folders, device, with_features), data, data_dir, out, as_json)
    if not processes.is_first():
        return
    if as_json:
        print(json.dumps({"out": str(out), **summary}))
        return
    terminal.console().print(
        f"{summary['predicted']} of {summary['rows']} rows predicted, {summary['invalid']} invalid: {out}"
    )


def _predict_table(
    runs: OneRun | SeveralRuns, table: Table, out: Path, smiles: str | None, quiet: bool
) -> dict[str, int]:
    column = table.column(smiles or runs.run.recipe.data.smiles)
    with _progress(quiet) as progress:
        task = progress.add_task("predicting", total=len(column) * runs.members)
        features = feature_rows(table, runs.run.recipe.data.features)
        columns, reasons = runs.molecules(column, lambda count: progress.update(task, advance=count), features)
    if processes.is_first():
        before = {name: [row[place] for row in table.rows] for place, name in enumerate(table.columns)}
        kept = {name: cells for name, cells in before.items() if name not in columns}
        write_output(out, lambda part: _write(part, kept | columns))
    invalid = sum(1 for reason in reasons if reason)
    return {"rows": len(column), "predicted": len(column) - invalid, "invalid": invalid}


def _predict_data(
    runs: OneRun | SeveralRuns, name: str, data_dir: Path | None, out: Path, quiet: bool
) -> dict[str, int]:
    graphs = load(DataRecipe(name), data_dir)
    with _progress(quiet) as progress:
        task = progress.add_task("predicting", total=graphs.num_graphs * runs.members)
        columns = runs.graphs(graphs, lambda count: progress.update(task, advance=count))
    if processes.is_first():
        write_output(out, lambda part: _write(part, columns))
    rows = len(columns["graph"])
    return {"rows": rows, "predicted": rows, "invalid": 0}


def _progress(quiet: bool) -> Progress:
    return Progress(console=terminal.console(stderr=True), disable=quiet or not processes.is_first())


def _write(path: Path, columns: Columns) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(map(as_text, columns))
        writer.writerows(map(as_text, row) for row in zip(*columns.values(), strict=True))
