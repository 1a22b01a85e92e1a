"""`ckgconv train`: a recipe, a saved recipe or a table of molecules → a run folder.

Options in groups have files of their own, such as `table_options`; a new group is one file and one parameter here.
"""

from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.ensemble_options import EnsembleOptions, train_members
from ckgconv.cli.initial_options import FeatureOptions, InitialOptions
from ckgconv.cli.option_groups import with_groups
from ckgconv.cli.report_options import ReportOptions
from ckgconv.cli.table_options import TableOptions, table_recipe
from ckgconv.cli.task_options import TaskOptions
from ckgconv.cli.train_jobs import check_folders, plan, run_folder, train_one
from ckgconv.cli.train_report import finish_folds, finish_replicates, report_seeds, summary
from ckgconv.cli.training_options import TrainingOptions
from ckgconv.data.tables import READERS, is_table
from ckgconv.engine.folds import FoldedRuns
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.replicates import Replicates
from ckgconv.engine.run_folder import holds_record, saved_record
from ckgconv.files import valid_json
from ckgconv.recipe import Recipe
from ckgconv.recipes import recipe, with_value
from ckgconv.recipes.molecules import fitting, in_words
from ckgconv.uncertainty.train_ensemble import EnsembleJob


@with_groups
def train_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="RECIPE",
            help="A recipe's name, a recipe.json, or a table: CSV, TSV, SMI, SDF, parquet.",
        ),
    ],
    table: TableOptions,
    features: FeatureOptions,
    initial: InitialOptions,
    training: TrainingOptions,
    report: ReportOptions,
    ensemble: EnsembleOptions,
    task: TaskOptions,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change any recipe value, such as model.width=32. Repeatable.")
    ] = None,
    seeds: Annotated[
        list[int] | None, typer.Option("--seed", "--pytorch-seed", help="One or several seeds: --seed 0 1 2 3.")
    ] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", "--num-folds", help="Cross-validate: one run per fold of all graphs.")
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--num-replicates", help="One run per seed of the split, from --data-seed on.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "--save-dir", "--output-dir", help="Folder for the run, by default runs/NAME-seedN."),
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str | None, typer.Option(help="32, tf32, bf16 or 64, by default 32.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a recipe; the network of the best validation epoch is kept and tested."""
    chosen = task.applied(training.applied(initial.applied(resolve(what, table, features))))
    for setting in settings or []:
        chosen = with_value(chosen, setting)
    if initial.init is None:
        chosen = fitting(chosen)
    if is_table(what) and not as_json and processes.is_first():
        for sentence in (*table.said(chosen), in_words(chosen)):
            terminal.console(soft_wrap=True).print(sentence)
    # The folder of a recipe.json may be that of a run, whose record then gives the defaults of seed and precision.
    own = Path(what).parent if Path(what).suffix == ".json" else None
    record = saved_record(own) if own is not None and (resume or holds_record(own)) else None
    out = own if out is None and resume else out
    chosen_precision = precision or ("32" if record is None else record.precision)
    chosen_seeds = seeds or [0 if record is None else record.seed]
    require(len(set(chosen_seeds)) == len(chosen_seeds), "The same seed was given twice: give each once.")
    folders = [run_folder(out, chosen, seed, len(chosen_seeds) > 1) for seed in chosen_seeds]
    ensemble.check(chosen_seeds, folds)
    if ensemble.ensemble_size is not None:
        members = train_members(
            EnsembleJob(
                chosen,
                folders[0],
                ensemble.ensemble_size,
                chosen_seeds[0],
                device,
                chosen_precision,
                data_dir,
                resume,
                ensemble.at_once,
            ),
            as_json,
        )
        report.write_together(members, folders[0], as_json)
        return
    planned = [
        plan(chosen, seed, folder, folds, replicates) for seed, folder in zip(chosen_seeds, folders, strict=True)
    ]
    check_folders([job for jobs in planned for job in jobs], chosen_precision, resume)
    done = [[train_one(job, resume, device, chosen_precision, data_dir, as_json) for job in jobs] for jobs in planned]
    if not processes.is_first():
        return
    report.write([run for jobs in done for run in jobs], as_json)
    if folds is not None:
        finish_folds([FoldedRuns(runs) for runs in done], folders, as_json)
        return
    if replicates is not None:
        finish_replicates([Replicates(runs) for runs in done], folders, as_json)
        return
    runs = [run for (run,) in done]
    if as_json:
        print(valid_json([summary(run) for run in runs] if len(runs) > 1 else summary(runs[0])))
    elif len(runs) > 1:
        report_seeds(runs)


def resolve(what: str, table: TableOptions, features: FeatureOptions | None = None) -> Recipe:
    """The recipe that the first argument names: a table, a recipe.json or the name of a recipe."""
    path = Path(what)
    if is_table(path):
        found = table_recipe(path, table)
        return found if features is None else features.applied(found)
    table.refuse(what)
    if features is not None:
        features.refuse(what)
    if path.suffix == ".json":
        require(path.exists(), f"{path} does not exist: give a recipe.json that a run has written.")
        return read_recipe(path)
    endings = ", ".join(READERS)
    require(
        path.suffix == "" or not path.exists(),
        f"{path} is neither a recipe.json nor a .csv or another table: give a file that ends in {endings}.",
    )
    return recipe(what)
