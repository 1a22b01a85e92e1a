"""The runs of one `ckgconv train` command: which there are, where they are kept, and how each is trained."""

from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.curve import draw_curve
from ckgconv.cli.train_report import report
from ckgconv.cli.watch import ProgressBar, Quiet
from ckgconv.engine.checkpoint import stems
from ckgconv.engine.folds import fold_folder, fold_recipe
from ckgconv.engine.replicates import replicate_folder, replicate_recipe
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_folder import check_folder, has_run
from ckgconv.recipe import Recipe
from ckgconv.uncertainty import fit, write_uncertainty


@dataclass(frozen=True)
class Job:
    """A run to train."""

    recipe: Recipe
    seed: int
    folder: Path


def plan(chosen: Recipe, seed: int, folder: Path, folds: int | None = None, replicates: int | None = None) -> list[Job]:
    """The runs of one seed: one, one per fold, or one per seed of the split."""
    require(folds is None or replicates is None, "--folds and --num-replicates were given: leave out one of them.")
    if replicates is not None:
        require(replicates >= 2, f"--num-replicates is {replicates}: give at least 2.")
        numbers = range(replicates)
        return [Job(replicate_recipe(chosen, number), seed, replicate_folder(folder, number)) for number in numbers]
    if folds is None:
        return [Job(chosen, seed, folder)]
    require(folds >= 3, f"--folds is {folds}: give at least 3, one to test, one to validate and one to train.")
    return [Job(fold_recipe(chosen, folds, fold), seed, fold_folder(folder, fold)) for fold in range(folds)]


def check_folders(jobs: list[Job], precision: str, resume: bool) -> None:
    """Check all folders before the first run is trained; of several runs to resume, some may not have begun."""
    begun = [job for job in jobs if has_run(job.folder)]
    require(
        bool(begun) or not resume or len(jobs) == 1,
        f"{jobs[0].folder.parent} holds no run to resume: start it without --resume.",
    )
    for job in jobs:
        check_folder(job.folder, job.recipe, job.seed, precision, resume and (len(jobs) == 1 or job in begun))


def run_folder(out: Path | None, chosen: Recipe, seed: int, several: bool) -> Path:
    """The folder of a run."""
    if out is None:
        return Path("runs") / f"{chosen.name}-seed{seed}"
    return out / f"seed{seed}" if several else out


def train_one(job: Job, resume: bool, device: str, precision: str, data_dir: Path | None, quiet: bool) -> Run:
    """Train a run; unless quiet, with a progress bar and a report."""
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
    keep_uncertainty(run, job.folder)
    if processes.is_first():
        draw_curve(run.record, job.folder / "curve.png")
        if not quiet:
            report(run, console)
    return run


def keep_uncertainty(run: Run, folder: Path) -> None:
    """Fit what predictions of a table's targets are worth; other data has no molecules to predict."""
    if not run.recipe.data.targets:
        return
    found = fit([run])
    if processes.is_first():
        write_uncertainty(folder, found)


def _kept(folder: Path) -> str:
    """What a run that was stopped goes on from."""
    kept = stems(folder / "checkpoints")
    if kept:
        return f"{folder} keeps a checkpoint after epoch {int(kept[0].name) + 1}."
    return f"{folder} keeps no checkpoint, since no epoch had ended."
