"""`ckgconv train`: a recipe, a saved recipe or a CSV of molecules → a run folder."""

import statistics
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from ckgconv.checks import InputError, require
from ckgconv.cli import processes, terminal
from ckgconv.cli.curve import draw_curve, sparkline
from ckgconv.cli.watch import ProgressBar, Quiet
from ckgconv.data.tables import read_table
from ckgconv.engine.baseline import majority_predictor, mean_predictor
from ckgconv.engine.checkpoint import stems
from ckgconv.engine.folds import FoldedRuns, fold_folder, fold_recipe, write_folds
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_folder import check_folder, has_run, holds_record, saved_record
from ckgconv.files import valid_json
from ckgconv.recipe import DataRecipe, Recipe
from ckgconv.recipe.limits import usable_name
from ckgconv.recipes import recipe, with_value
from ckgconv.recipes.molecules import molecules
from ckgconv.registry import nearest


class Split(StrEnum):
    random = "random"
    scaffold = "scaffold"


def train_command(
    what: Annotated[
        str, typer.Argument(metavar="RECIPE", help="A recipe's name, a recipe.json, or a CSV of molecules.")
    ],
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change any recipe value, such as model.width=32. Repeatable.")
    ] = None,
    seeds: Annotated[list[int] | None, typer.Option("--seed", help="One or several seeds: --seed 0 1 2 3.")] = None,
    smiles: Annotated[str, typer.Option(help="CSV: column of the SMILES.")] = "smiles",
    target: Annotated[list[str] | None, typer.Option(help="CSV: column to predict. Repeatable.")] = None,
    split: Annotated[Split, typer.Option(help="CSV: how to split the rows.")] = Split.random,
    folds: Annotated[int | None, typer.Option(help="Cross-validate: one run per fold of all graphs.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the run, by default runs/NAME-seedN.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str | None, typer.Option(help="32, tf32, bf16 or 64, by default 32.")] = None,
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a recipe; the network of the best validation epoch is kept and tested."""
    chosen = resolve(what, smiles, target or [], split.value)
    # The folder of a recipe.json may be that of a run, whose record then gives the defaults of seed and precision.
    own = Path(what).parent if Path(what).suffix == ".json" else None
    record = saved_record(own) if own is not None and (resume or holds_record(own)) else None
    out = own if out is None and resume else out
    chosen_precision = precision or ("32" if record is None else record.precision)
    for setting in settings or []:
        chosen = with_value(chosen, setting)
    chosen_seeds = seeds or [0 if record is None else record.seed]
    require(len(set(chosen_seeds)) == len(chosen_seeds), "The same seed was given twice: give each once.")
    folders = [run_folder(out, chosen, seed, len(chosen_seeds) > 1) for seed in chosen_seeds]
    planned = [plan(chosen, seed, folder, folds) for seed, folder in zip(chosen_seeds, folders, strict=True)]
    _check_folders([job for jobs in planned for job in jobs], chosen_precision, resume)
    done = [[_train_one(job, resume, device, chosen_precision, data_dir, as_json) for job in jobs] for jobs in planned]
    if not processes.is_first():
        return
    if folds is not None:
        _finish_folds([FoldedRuns(runs) for runs in done], folders, as_json)
        return
    runs = [run for (run,) in done]
    if as_json:
        print(valid_json([summary(run) for run in runs] if len(runs) > 1 else summary(runs[0])))
    elif len(runs) > 1:
        _report_spread(runs)


@dataclass(frozen=True)
class Job:
    """A run to train."""

    recipe: Recipe
    seed: int
    folder: Path


def plan(chosen: Recipe, seed: int, folder: Path, folds: int | None) -> list[Job]:
    """The runs of one seed: one, or one per fold."""
    if folds is None:
        return [Job(chosen, seed, folder)]
    require(folds >= 3, f"--folds is {folds}: give at least 3, one to test, one to validate and one to train.")
    return [Job(fold_recipe(chosen, folds, fold), seed, fold_folder(folder, fold)) for fold in range(folds)]


def _check_folders(jobs: list[Job], precision: str, resume: bool) -> None:
    """Before the first of them is trained; of several to resume, some may not have begun."""
    begun = [job for job in jobs if has_run(job.folder)]
    require(
        bool(begun) or not resume or len(jobs) == 1,
        f"{jobs[0].folder.parent} holds no run to resume: start it without --resume.",
    )
    for job in jobs:
        check_folder(job.folder, job.recipe, job.seed, precision, resume and (len(jobs) == 1 or job in begun))


def resolve(what: str, smiles: str, targets: list[str], split: str) -> Recipe:
    """The recipe that the first argument names: a CSV, a recipe.json or the name of a recipe."""
    path = Path(what)
    if path.suffix.lower() == ".csv":
        return table_recipe(path, smiles, targets, split)
    require(not targets, f"--target belongs to a CSV, not to {what!r}: leave it out.")
    if path.suffix == ".json":
        require(path.exists(), f"{path} does not exist: give a recipe.json that a run has written.")
        return read_recipe(path)
    require(path.suffix == "" or not path.exists(), f"{path} is neither a recipe.json nor a .csv: give one of them.")
    return recipe(what)


def table_recipe(path: Path, smiles: str, targets: list[str], split: str) -> Recipe:
    """A recipe for a CSV: classification where every known target is 0 or 1, regression otherwise."""
    require(path.exists(), f"{path} does not exist: check the path of the CSV.")
    table = read_table(path)
    others = [name for name in table.columns if name != smiles]
    require(bool(targets), f"No target was named: give --target with one of {', '.join(others)}.")
    for name in (smiles, *targets):
        if name not in table.columns:
            raise InputError(f"{path} has no column {name!r}: {nearest(name, list(table.columns))}")
    values = {value for name in targets for value in table.numbers(name) if value == value}
    require(len(set(targets)) == len(targets), "The same target was given twice: give each once.")
    data = DataRecipe(str(path.resolve()), smiles=smiles, targets=tuple(targets), split=split)  # type: ignore[arg-type]
    chosen = molecules(data, classification=bool(values) and values <= {0.0, 1.0})
    return replace(chosen, name=usable_name(path.stem, "table"))


def run_folder(out: Path | None, chosen: Recipe, seed: int, several: bool) -> Path:
    """The folder of a run."""
    if out is None:
        return Path("runs") / f"{chosen.name}-seed{seed}"
    return out / f"seed{seed}" if several else out


def summary(run: Run) -> dict[str, object]:
    """The outcome of a run, for --json."""
    record = run.record
    return {
        "recipe": run.recipe.name,
        "seed": record.seed,
        "metric": record.metric,
        "best": record.to_json()["best"],
        "last": record.to_json().get("last"),
        "averaged": record.to_json().get("averaged"),
        "paper_test": list(run.recipe.paper_test),
        "mean_predictor": mean_predictor(run),
        "majority_predictor": majority_predictor(run),
        "wall_s": record.wall_s,
        "device": record.device,
        "run": str(run.folder),
    }


def _train_one(job: Job, resume: bool, device: str, precision: str, data_dir: Path | None, quiet: bool) -> Run:
    console = terminal.console(stderr=quiet)
    bar = ProgressBar(console)
    silent = quiet or not processes.is_first()
    if job.recipe.data.folds is not None and not silent:
        console.print(f"fold {job.recipe.data.fold + 1} of {job.recipe.data.folds}")
    try:
        run = train(
            job.recipe,
            job.seed,
            data=data_dir,
            folder=job.folder,
            resume=resume and has_run(job.folder),
            device=device,
            precision=precision,
            watcher=Quiet() if silent else bar,
        )
    except (KeyboardInterrupt, SystemExit):
        if processes.is_first():
            terminal.console(stderr=True, soft_wrap=True).print(_kept(job.folder))
        raise
    finally:
        bar.stop()
    if processes.is_first():
        draw_curve(run.record, job.folder / "curve.png")
        if not quiet:
            _report(run, console)
    return run


def _kept(folder: Path) -> str:
    """What a run that was stopped goes on from."""
    kept = stems(folder / "checkpoints")
    if kept:
        return f"{folder} keeps a checkpoint after epoch {int(kept[0].name) + 1}."
    return f"{folder} keeps no checkpoint, since no epoch had ended."


def _report(run: Run, console: Console) -> None:
    best, metric = run.record.best, run.record.metric
    if best is not None:
        test = "no test split" if best.test is None else f"test {metric} {best.test:.4f}"
        console.print(f"best epoch {best.epoch + 1}: validation {metric} {best.val:.4f}, {test}")
    for name, ending in (("last epoch", run.record.last), ("mean of {} epochs' weights", run.record.averaged)):
        if ending is not None and ending.test is not None:
            what = name.format(f"the last {ending.epochs}")
            console.print(f"{what}: validation {metric} {ending.val:.4f}, test {metric} {ending.test:.4f}")
    for guess, baseline in (("training mean", mean_predictor), ("most frequent class", majority_predictor)):
        value = baseline(run)
        if value is not None:
            console.print(f"always the {guess}: test {metric} {value:.4f}")
    if run.recipe.paper_test:
        published = " ± ".join(f"{value:.4f}" for value in run.recipe.paper_test)
        console.print(f"paper, its full recipe: test {metric} {published}")
    console.print(f"validation {metric} by epoch: {sparkline([entry.val for entry in run.record.epochs])}")
    console.print(f"run: {run.folder}   curve: {run.folder}/curve.png")


def _finish_folds(found: list[FoldedRuns], folders: list[Path], as_json: bool) -> None:
    """Write folds.json of every seed, and print mean and s.d. over its folds."""
    for folded, folder in zip(found, folders, strict=True):
        write_folds(folder, folded)
    if as_json:
        results = [folded.to_json() | {"runs": [summary(run) for run in folded.runs]} for folded in found]
        print(valid_json(results if len(results) > 1 else results[0]))
        return
    console = terminal.console(soft_wrap=True)
    for folded, folder in zip(found, folders, strict=True):
        count, metric = len(folded.runs), folded.metric
        console.print(f"test {metric} over {count} folds: {folded.tested}, each at its best validation epoch")
        console.print(
            f"validation {metric} at epoch {folded.common_epoch + 1}, the best on average over the folds: "
            f"{folded.at_common_epoch}"
        )
        console.print(f"runs: {folder}/fold0 … fold{count - 1}")


def _report_spread(runs: list[Run]) -> None:
    """Print mean and s.d. over the seeds, where all runs have a test metric."""
    tests = [run.record.test for run in runs]
    known = [test for test in tests if test is not None]
    if len(known) == len(runs):
        spread = f"{statistics.mean(known):.4f} ± {statistics.stdev(known):.4f}"
        terminal.console().print(f"test {runs[0].record.metric} over {len(known)} seeds: {spread}")
