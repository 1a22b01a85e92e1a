"""Whether runs can be members of one ensemble, and what they cost together."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ckgconv.checks import InputError, require, shown
from ckgconv.engine.run import Run


@dataclass(frozen=True)
class Cost:
    """Sums over the members; None where the record of one does not say."""

    parameters: int
    training_s: float | None
    peak_memory_mb: int | None  # of training: as if all members were trained at the same time
    predicting_s: float | None = None  # of all members one after the other; None: nothing was predicted


def check_together(runs: Sequence[Run]) -> None:
    """Refuse runs of other data, splits, targets or outputs, and a run that is given twice."""
    require(len(runs) > 1, f"{len(runs)} run was given, but an ensemble needs at least 2: open one run with open_run.")
    first = runs[0]
    for place, run in enumerate(runs[1:], start=1):
        require(all(run is not other for other in runs[:place]), f"{name_of(run)} was given twice: give each run once.")
        _check_data(first, run)
        for what, one, other in zip(WHAT, _task(first), _task(run), strict=True):
            if one != other:
                raise InputError(
                    f"{name_of(first)} and {name_of(run)} differ in their {what} ({one} and {other}): give runs "
                    f"that predict the same."
                )


def total_cost(runs: Sequence[Run]) -> Cost:
    """What the members cost together, as their records say."""
    records = [run.record for run in runs]
    seconds, memory = ([getattr(record, name) for record in records] for name in ("wall_s", "peak_memory_mb"))
    return Cost(
        parameters=sum(parameter.numel() for run in runs for parameter in run.model.parameters()),
        training_s=round(sum(seconds), 3) if all(seconds) else None,
        peak_memory_mb=sum(memory) if all(memory) else None,
    )


def name_of(run: Run) -> str:
    """How messages call a run: by its folder, or by recipe and seed."""
    return f"{run.recipe.name} with seed {run.record.seed}" if run.folder is None else str(run.folder)


WHAT = ("target columns", "kind of targets", "outputs", "rows")


def _task(run: Run) -> tuple[Any, ...]:
    columns = ", ".join(run.recipe.data.targets) or "none named"
    rows = "one per node" if run.model.predicts_nodes else "one per graph"
    return columns, run.learner.task.loss.targets, run.model.outputs, rows


def _check_data(first: Run, run: Run) -> None:
    """By the digest of the data; records of earlier versions have none, and their recipes must name the same data."""
    one, other = first.record.data, run.record.data
    start = f"{name_of(run)} was not trained on the data and splits of {name_of(first)}"
    remedy = "Give runs that were trained on the same data."
    if one is None or other is None:
        theirs, ours = vars(first.recipe.data), vars(run.recipe.data)
        names = [name for name in ours if ours[name] != theirs[name]]
        apart = [f"data.{name} is {shown(ours[name])}, not {shown(theirs[name])}" for name in names]
        require(not apart, f"{start}: {', '.join(apart)}. {remedy}")
    elif one.digest != other.digest:
        named = "" if one.name == other.name else f" ({other.name!r}, not {one.name!r})"
        raise InputError(f"{start}{named}: {one.difference(other)}. {remedy}")
