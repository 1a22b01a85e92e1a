"""Runs next to each other: metric, cost, curves, and whether groups of seeds can be told apart.

Groups are compared by Welch's two-sided t-test between test metrics at the best validation epoch; they are not told
apart unless p < 0.05, nor where a group has a single finished run or was tested on other data.
"""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import combinations
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ckgconv.checks import require
from ckgconv.engine.record import Record
from ckgconv.studies.grid import plus_minus
from ckgconv.studies.groups import Group, Member, grouped, read_members
from ckgconv.studies.outcomes import epoch_seconds, origin_of
from ckgconv.studies.report import Cell, Report, markdown_table, new_figure
from ckgconv.studies.significance import LEVEL
from ckgconv.studies.verdict import Values, Verdict, welch
from ckgconv.tasks.metrics import METRICS

RUN_COLUMNS = ("run", "recipe", "seed", "state", "best epoch", "val", "test", "parameters", "s/epoch", "total s", "MB")
PAIR_COLUMNS = ("recipe", "and", "Welch's t-test")
GROUP_COLUMNS = ("against the best", "parameters", "s/epoch", "total s", "MB")
LOG_RANGE = 30  # from the least value to the largest
# Groups beyond these share colours.
COLOURS = ("tab:blue", "tab:orange", "tab:green", "tab:red", "tab:purple", "tab:brown", "tab:pink", "tab:olive")
NOTE = f"""\
Metrics are those of the best validation epoch; mean ± s.d. (dividing by n - 1) of the finished runs. "Against the best"
is Welch's two-sided t-test between test metrics, at the level of {LEVEL} and without a correction for several
comparisons: groups are not told apart unless p < {LEVEL}. s/epoch: median over the training epochs; total s: with
validation and checkpoints, mean of the runs; MB: the largest peak of a run. Times of runs that shared a device, or had
different ones, are no benchmark."""


def compare(paths: Sequence[Path]) -> Report:
    """The report on several runs."""
    require(len(paths) > 1, f"{len(paths)} run was given: give at least two to compare.")
    members = read_members(paths)
    groups = grouped(members)
    metric = members[0].record.metric
    verdicts = [verdict(one, other) for one, other in combinations(groups, 2)]
    best = best_group(groups, metric)
    title = finding(groups, verdicts, best, metric)
    runs = [run_row(group, member) for group in groups for member in group.members]
    return Report(
        title=title,
        columns=(*("recipe", "runs", f"val {metric}", f"test {metric}"), *GROUP_COLUMNS),
        rows=[group_row(group, best, verdicts) for group in groups],
        figure=draw(groups, metric, title),
        notes=(markdown_table(RUN_COLUMNS, runs), *pairs_note(verdicts), NOTE),
        values={
            "metric": metric,
            "runs": [dict(zip(RUN_COLUMNS, row, strict=True)) for row in runs],
            "tests": [{**asdict(each), "told_apart": each.told_apart, "verdict": str(each)} for each in verdicts],
        },
        seeds=tuple(sorted({member.record.seed for member in members})),
        origin=origin_of([member.record for member in members]),
    )


def direction(metric: str) -> bool | None:
    """Whether higher is better; None for a metric that was given in Python."""
    return METRICS[metric].higher_is_better if metric in METRICS else None


def verdict(one: Group, other: Group) -> Verdict:
    """Welch's t-test between the test metrics of two groups."""
    return welch(Values(one.label, one.tests, one.digests), Values(other.label, other.tests, other.digests))


def best_group(groups: Sequence[Group], metric: str) -> Group | None:
    """The best mean test metric; None where no run is tested, or the direction of the metric or the data differ."""
    tested, higher = [group for group in groups if group.tests], direction(metric)
    if not tested or higher is None or other_data(tested):
        return None
    return max(tested, key=lambda group: fmean(group.tests) * (1 if higher else -1))


def other_data(groups: Sequence[Group]) -> bool:
    """Whether records say that not all groups were tested on the same data."""
    return len({frozenset(group.digests) for group in groups if group.digests}) > 1


def finding(groups: Sequence[Group], verdicts: Sequence[Verdict], best: Group | None, metric: str) -> str:
    """The title, from the numbers."""
    if best is None:
        tested = [group for group in groups if group.tests]
        return f"{len(groups)} recipes by {metric}{', tested on other data' * other_data(tested)}: no best one"
    reached = f"test {metric} {plus_minus(best.tests)}"
    if len(groups) == 1:
        return f"{best.label}: {reached} over {len(best.tests)} run{'s' if len(best.tests) > 1 else ''}"
    against = {other_of(each, best): each for each in verdicts if best.label in (each.first, each.second)}
    labels: dict[str, list[str]] = {"told apart from": [], "not told apart from": [], "no test against": []}
    for label, each in against.items():
        labels["no test against" if each.p is None else f"{'' if each.told_apart else 'not '}told apart from"] += [
            label
        ]
    parts = [f"{words} {' and '.join(named)}" for words, named in labels.items() if named]
    return f"Best mean: {best.label}, {reached}; {', '.join(parts)}"


def other_of(each: Verdict, group: Group) -> str:
    """The label of the other group of a test."""
    return each.second if each.first == group.label else each.first


def group_row(group: Group, best: Group | None, verdicts: Sequence[Verdict]) -> tuple[Cell, ...]:
    """A group as a row of the table."""
    untested = [member.state for member in group.members if member.record.test is None]
    word = "unfinished" if all(state.startswith("unfinished") for state in untested) else "untested"
    runs = str(len(group.finished)) + (f" + {len(untested)} {word}" if untested else "")
    records = list(group.finished) or [member.record for member in group.members]
    so_far = "" if group.finished else " so far"
    return (
        group.label,
        runs,
        plus_minus(group.vals) + so_far if group.vals else None,
        plus_minus(group.tests) if group.tests else None,
        against_best(group, best, verdicts),
        records[0].parameters or None,
        *costs(records),
    )


def against_best(group: Group, best: Group | None, verdicts: Sequence[Verdict]) -> str | None:
    """What the test between a group and the best one says."""
    if best is None or not verdicts:
        return next((str(each) for each in verdicts if each.second == group.label and each.p is None), None)
    if group is best:
        return "best mean"
    return next(str(each) for each in verdicts if {each.first, each.second} == {group.label, best.label})


def costs(records: Sequence[Record]) -> tuple[Cell, Cell, Cell]:
    """Seconds of an epoch, seconds of a run, and MB; None where they are not known."""
    epoch, total = epoch_seconds(records), fmean(record.wall_s for record in records)
    memory = max(record.peak_memory_mb for record in records)
    return None if epoch is None else round(epoch, 3), round(total, 1) or None, memory or None


def run_row(group: Group, member: Member) -> tuple[Cell, ...]:
    """A run as a row of the table of runs."""
    record = member.record
    epoch, val = (None, None) if record.best is None else (record.best.epoch + 1, record.best.val)
    scores = (epoch, val, record.test, record.parameters or None)
    return str(member.path), group.label, record.seed, member.state, *scores, *costs([record])


def pairs_note(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    """Every pair of groups: the first table has tests against the best group alone, or none where no group is best."""
    rows = [(each.first, each.second, str(each)) for each in verdicts]
    return (markdown_table(PAIR_COLUMNS, rows),) if rows else ()


def draw(groups: Sequence[Group], metric: str, title: str) -> Figure:
    """Test metrics, every run a dot; below, training losses and validation metrics by epoch."""
    figure = new_figure(4.4 + 0.35 * len(groups))
    grid = figure.add_gridspec(2, 2, height_ratios=(0.6 + 0.35 * len(groups), 3.0))
    _draw_metrics(figure.add_subplot(grid[0, :]), groups, metric)
    for place, name in enumerate(("training loss", f"validation {metric}")):
        _draw_curves(figure.add_subplot(grid[1, place]), groups, name, log=direction(metric) is False)
    figure.suptitle(title, fontsize=10, wrap=True, parse_math=False)
    return figure


def _draw_metrics(axes: Axes, groups: Sequence[Group], metric: str) -> None:
    for place, group in enumerate(groups):
        colour = COLOURS[place % len(COLOURS)]
        axes.plot(group.vals, [place - 0.15] * len(group.vals), "o", color=colour, fillstyle="none", alpha=0.8)
        axes.plot(group.tests, [place + 0.15] * len(group.tests), "o", color=colour, alpha=0.8)
        if group.tests:
            axes.plot(fmean(group.tests), place + 0.15, "|", color=colour, markersize=16, markeredgewidth=2)
    axes.plot([], [], "o", color="gray", label="test; bar: mean")
    axes.plot([], [], "o", color="gray", fillstyle="none", label="validation")
    axes.set_yticks(range(len(groups)), [wrapped(group.label) for group in groups], fontsize=8)
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.tick_params(axis="x", labelsize=8)
    axes.set_xlabel(f"{metric} at the best validation epoch", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
    axes.legend(fontsize=8, loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)


def _draw_curves(axes: Axes, groups: Sequence[Group], name: str, log: bool) -> None:
    values: list[float] = []
    for place, group in enumerate(groups):
        for member in group.members:
            epochs = member.record.epochs
            heights = [entry.train_loss if name == "training loss" else entry.val for entry in epochs]
            style = "-" if member.record.test is not None else "--"
            numbers = [entry.epoch + 1 for entry in epochs]
            marker = "o" if len(numbers) == 1 else None  # a line through one point is not drawn
            colour = COLOURS[place % len(COLOURS)]
            axes.plot(numbers, heights, style, color=colour, marker=marker, linewidth=0.8, alpha=0.7)
            values += heights
    if any(member.record.test is None for group in groups for member in group.members):
        axes.plot([], [], "--", color="gray", label="without a test metric")
        axes.legend(fontsize=8)
    # Below, a logarithmic axis would have no labelled tick, or one.
    if log and values and min(values) > 0 and max(values) > LOG_RANGE * min(values):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("")
    axes.tick_params(labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("epoch", fontsize=9)
    axes.set_title(name, fontsize=9, parse_math=False)
    axes.grid(alpha=0.3, which="both")


def wrapped(label: str) -> str:
    """A label in several lines."""
    return label.replace(" (", "\n(").replace(", ", ",\n")
