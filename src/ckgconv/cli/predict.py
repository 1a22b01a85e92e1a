"""`ckgconv predict RUN … DATA`: the molecules of a table with their predictions, or the predictions for a data set.

Several runs, or an ensemble, predict together: the mean over them, with deviation and median next to it.
"""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.output_table import check_output_table
from ckgconv.cli.predict_table import predict_table
from ckgconv.cli.predictions import predictor, write_columns
from ckgconv.data import load
from ckgconv.data.tables import is_table
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.run_folder import check_output
from ckgconv.engine.trained import TRAINED
from ckgconv.files import check_names_file, is_stdout, write_output
from ckgconv.recipe import DataRecipe
from ckgconv.uncertainty.intervals import check_level
from ckgconv.uncertainty.parallel import Opening
from ckgconv.uncertainty.predictor import LEVEL


def predict_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Folder of a run or an ensemble, or one of {', '.join(TRAINED)}; several: as one."
        ),
    ],
    data: Annotated[
        str,
        typer.Argument(
            metavar="DATA", help="A table (CSV, TSV, SMI, SDF, parquet), a named data set or a packed .npz."
        ),
    ],
    out: Annotated[
        Path, typer.Option("-o", "--out", help="CSV or TSV to write, by its ending; with .gz compressed.")
    ] = Path("predictions.csv"),
    smiles: Annotated[str | None, typer.Option(help="Table: column of the SMILES, by default as in training.")] = None,
    level: Annotated[float, typer.Option("--interval", help="Table: level of the intervals, where fitted.")] = LEVEL,
    workers: Annotated[
        int | None, typer.Option(help="Table: processes that predict, by default one per core for a long table.")
    ] = None,
    with_features: Annotated[
        bool, typer.Option("--embed", help="Add the features that the head reads, of each molecule, graph or node.")
    ] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a summary as JSON.")] = False,
) -> None:
    """Predict the molecules of a table, with a reason for each invalid one; or all graphs or nodes of a data set.

    Members predict their mean, with columns NAME_deviation and NAME_median. Where these were fitted in training there
    are intervals (NAME_lower, NAME_upper), calibrated probabilities (NAME_calibrated), and the similarity to the
    nearest training molecule.
    """
    check_names_file(out)
    check_output(out)
    check_output_table(out)
    check_level(level)
    given = Path(data)
    is_run = (given / "recipe.json").exists() or is_ensemble(given)
    require(not is_run, f"{data} is a run, but the last argument is the data to predict: add a CSV or a data set.")
    if is_table(given):
        require(given.exists(), f"{data} does not exist: check the path of the table to predict.")
        require(not (out.exists() and out.samefile(given)), f"{out} is the input: choose another file with -o.")
        opening = Opening(tuple(map(str, folders)), device, level, with_features)
        if not processes.is_first():
            opening.open()  # the first process waits for the others to join it
            return
        summary = predict_table(opening, given, out, smiles, workers, as_json)
    else:
        require(smiles is None, f"--smiles belongs to a CSV, not to {data!r}: leave it out.")
        require(workers is None, f"--workers belongs to a table, not to {data!r}: leave it out.")
        summary = _predict_data(folders, device, with_features, data, data_dir, out, as_json)
    if not processes.is_first():
        return
    told = sys.stderr if is_stdout(out) else sys.stdout  # which then holds the table, and nothing else
    if as_json:
        print(json.dumps({"out": str(out), **summary}), file=told)
        return
    terminal.console(file=told).print(
        f"{summary['predicted']} of {summary['rows']} rows predicted, {summary['invalid']} invalid: {out}"
    )


def _predict_data(
    folders: list[Path], device: str, embed: bool, name: str, data_dir: Path | None, out: Path, quiet: bool
) -> dict[str, int]:
    runs = predictor(folders, device, embed)
    graphs = load(DataRecipe(name), data_dir)
    shown = not quiet and processes.is_first()
    with Progress(console=terminal.console(stderr=True), disable=not shown) as progress:
        task = progress.add_task("predicting", total=graphs.num_graphs * runs.members)
        columns = runs.graphs(graphs, lambda count: progress.update(task, advance=count))
    if processes.is_first():
        write_output(out, lambda part: write_columns(part, out, columns))
    rows = len(columns["graph"])
    return {"rows": rows, "predicted": rows, "invalid": 0}
