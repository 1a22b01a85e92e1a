"""`ckgconv evaluate RUN …`: the metric of the best network of a run on a split, or of the mean of several runs."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ckgconv.cli import processes, terminal
from ckgconv.engine.compatible import name_of
from ckgconv.engine.ensemble import Evaluated, MemberOutcomes, member_outcomes, metric_of, open_runs
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.opened import open_run
from ckgconv.engine.repeated import mean_and_deviation
from ckgconv.engine.run import Run
from ckgconv.engine.trained import TRAINED, run_folder
from ckgconv.files import valid_json
from ckgconv.report.scores import by_target, shown, word
from ckgconv.uncertainty.fit import together
from ckgconv.uncertainty.intervals import check_level
from ckgconv.uncertainty.judge import Judged, judge
from ckgconv.uncertainty.kept import Uncertainty, read_uncertainty
from ckgconv.uncertainty.predictor import LEVEL

Scores = dict[str, dict[str, float | None]]  # by target and metric


def evaluate_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Folder of a run, or one of {', '.join(TRAINED)}; several: an ensemble."
        ),
    ],
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    level: Annotated[
        float, typer.Option("--interval", help="Level of the intervals whose coverage is measured.")
    ] = LEVEL,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Evaluate the best network of a run; of several runs, the mean and the median of their predictions.

    Of columns of a table, the scores of each are printed; where intervals or calibrated probabilities were
    fitted, their coverage or log loss on the split, too.
    """
    check_level(level)
    kept = read_uncertainty(run_folder(folders[0])) if len(folders) == 1 else None
    if len(folders) > 1 or is_ensemble(folders[0]):
        ensemble = open_runs(folders, device, data=data_dir)
        outcomes = member_outcomes(ensemble.runs, split)
        found = ensemble.evaluate(split, outcomes)
        targets, judged = _beside(ensemble.runs, split, outcomes, kept, level)
        if processes.is_first():
            _show(found, [Path(name_of(run)) for run in ensemble.runs], targets, judged, as_json)
        return
    run = open_run(folders[0], device, data=data_dir)
    if run.recipe.data.targets:
        outcomes = member_outcomes([run], split)
        value = metric_of(run.learner.task, outcomes.members[0], outcomes.target)
        targets, judged = _beside([run], split, outcomes, kept, level)
    else:
        value, targets, judged = run.evaluate(split), {}, None
    metric = run.record.metric
    if not processes.is_first():
        return
    if as_json:
        found_json = {"run": str(folders[0]), "split": split, "metric": metric, "value": value}
        print(valid_json(found_json | _further(targets, judged)))
        return
    terminal.console().print(f"{split} {metric} {value:.4f}")
    _show_targets(targets)
    _show_judged(judged)


def _beside(
    runs: Sequence[Run], split: str, outcomes: MemberOutcomes, kept: Uncertainty | None, level: float
) -> tuple[Scores, Judged | None]:
    """The scores of every target, and of what was fitted for one run or ensemble."""
    found = together(outcomes)
    judged = None if kept is None else judge(runs, kept, split, level, found)
    return by_target(runs, split, found), judged


def _show_judged(judged: Judged | None) -> None:
    if judged is None:
        return
    console = terminal.console(soft_wrap=True)
    for name, each in judged.coverage.items():
        if each.rows:
            console.print(
                f"{name}: intervals of level {each.level:g} contain {each.share:.3f} of {each.rows} targets; mean "
                f"width {each.width:.4g}"
            )
    for name, one in judged.calibration.items():
        console.print(
            f"{name}: log loss {one.log_loss:.4f}, calibrated {one.log_loss_calibrated:.4f}; Brier score "
            f"{one.brier:.4f}, calibrated {one.brier_calibrated:.4f}"
        )
    for note in judged.notes:
        console.print(note)


def _further(targets: Scores, judged: Judged | None) -> dict[str, Any]:
    """What JSON has besides the metric."""
    return ({"targets": targets} if targets else {}) | ({} if judged is None else judged.to_json())


def _show_targets(targets: Scores) -> None:
    """A table for targets that are numbers, and one for labels and classes."""
    kinds = {tuple(scores) for scores in targets.values()}
    for kind in sorted(kinds, reverse=True):
        table = Table("target", *(word(each) for each in kind))
        for name, scores in targets.items():
            if tuple(scores) == kind:
                table.add_row(terminal.plain(name), *(shown(value) for value in scores.values()))
        terminal.console(soft_wrap=True).print(table)


def _show(found: Evaluated, folders: list[Path], targets: Scores, judged: Judged | None, as_json: bool) -> None:
    if as_json:
        values = {"runs": [str(folder) for folder in folders], **asdict(found)}
        print(valid_json(values | _further(targets, judged)))
        return
    console = terminal.console()
    console.print(
        f"{found.split} {found.metric} {found.value:.4f} by the mean of {len(folders)} runs, {found.median:.4f} by "
        f"their median"
    )
    for folder, value in zip(folders, found.members, strict=True):
        console.print(f"  {value:.4f} {folder}")
    console.print(
        f"members alone {mean_and_deviation(found.members)}; s.d. between their predictions {found.spread:.4f}"
    )
    console.print(_costs(found))
    _show_targets(targets)
    _show_judged(judged)


def _costs(found: Evaluated) -> str:
    cost = found.cost
    training = "unknown seconds" if cost.training_s is None else f"{cost.training_s:,.0f} s"
    memory = "unknown memory" if cost.peak_memory_mb is None else f"{cost.peak_memory_mb:,} MB"
    return (
        f"together {cost.parameters:,} parameters, {training} and {memory} of training, {cost.predicting_s:.1f} s of "
        f"prediction"
    )
