"""The page of a campaign: a row per recipe and changes, mean and s.d. over seeds, t-tests, and the records of each row.

A page shows validation metrics alone until the campaign is final. Rows on one data set are compared with its first row
by Welch's t-test: one is better only where p < 0.05, and otherwise they are not told apart. Before it is final the test
compares the first of the recipe's further metrics (`training.metrics`) by the weights after the last epoch, which
nothing chose, where a recipe has some: one with less noise than the metric tells settings apart with fewer seeds.
"""

from collections.abc import Sequence
from dataclasses import asdict
from statistics import fmean
from textwrap import fill

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckgconv.campaigns.folder import CampaignFolder, Event
from ckgconv.campaigns.plan import Campaign
from ckgconv.campaigns.progress import DONE, FAILED, Progress, counts, progress_of
from ckgconv.campaigns.row import Row, counts_in, defined, rows_of
from ckgconv.engine.record import Ending
from ckgconv.studies.compare import costs, direction
from ckgconv.studies.grid import plus_minus
from ckgconv.studies.outcomes import origin_of
from ckgconv.studies.printed import PAPER_RUNS
from ckgconv.studies.report import Cell, Origin, Provenance, Report, new_figure, write_page
from ckgconv.studies.significance import LEVEL
from ckgconv.studies.t_test import Sample, sample, t_test
from ckgconv.studies.verdict import Verdict, welch

VALIDATION = f"""\
This campaign is not final: its settings may still change, and no test metric has been computed. Metrics are those of
the validation split at the best epoch, mean ± s.d. (dividing by n - 1) over the n finished seeds of a row; the epoch
was chosen by them, so they flatter every row. "Averaged" is the mean of the weights over the last quarter of the
epochs, which nothing chose, as nothing chose the weights after the last one. "Against the first" is Welch's two-sided
t-test with the first row of the same data set, of the metric at the best epoch, or of the first further metric after
the last epoch where there is one; at the level of {LEVEL} and without a correction for several comparisons."""
TEST = f"""\
Metrics are those of the best validation epoch, mean ± s.d. (dividing by n - 1) over the n finished seeds of a row;
"last" are those of the weights after the last epoch, "averaged" of their mean over the last quarter of the epochs, and
no test compares these two. "Against the first" is Welch's two-sided t-test between test metrics with the first row of
the same data set; "against the paper" the same test with the printed mean ± s.d. of {PAPER_RUNS} runs, for an unchanged
recipe. The level is {LEVEL}, without a correction for several comparisons."""
COSTS = """\
s/epoch: median over the training epochs; total s: with validation and checkpoints, mean of the runs; MB: the largest
peak of a run. Times of runs that shared a device, or had different ones, are no benchmark."""
FIRST_COLUMNS = ("data set", "recipe and changes", "n", "metric", "val", "val, averaged")
TEST_COLUMNS = ("test", "test, last", "test, averaged", "paper", "against the paper")
ENDINGS = ("last", "averaged")
# Longer labels are folded.
LABEL_WIDTH = 30
LAST_COLUMNS = ("against the first", "parameters", "s/epoch", "total s", "MB", "records")


def write_campaign_page(folder: CampaignFolder) -> Report:
    """Write README.md, figure.png and table.json into the folder of a campaign."""
    campaign, found = folder.campaign(), progress_of(folder)
    report = campaign_report(campaign, found, folder.history())
    origin = report.origin or Origin(None, "no device", {}, 0.0)
    command = f"ckgconv campaign {folder.path.resolve().name}"
    write_page(folder.path, report, Provenance(**asdict(origin), command=command, seeds=report.seeds))
    return report


def campaign_report(campaign: Campaign, found: Sequence[Progress], history: Sequence[Event]) -> Report:
    """The table, the figure and the tests of what is trained so far."""
    rows = rows_of(campaign, found)
    first = {row.problem: row for row in reversed(rows)}
    records = [record for row in rows for record in row.ended]
    further = tuple(dict.fromkeys(name for row in rows for name in row.further))
    pairs = [(first[row.problem], row) for row in rows if row is not first[row.problem]]
    verdicts = [welch(one.judged, row.judged) for one, row in pairs if one.judged_metric == row.judged_metric]
    return Report(
        title=f"{campaign.shows}: {counts(found)}",
        columns=(
            *FIRST_COLUMNS,
            *(f"{'test ' * campaign.final}{name}, {ending}" for name in further for ending in ENDINGS),
            *(TEST_COLUMNS if campaign.final else ()),
            *LAST_COLUMNS,
        ),
        rows=[_cells(row, first[row.problem], further) for row in rows],
        figure=_draw(campaign, rows),
        notes=(
            TEST if campaign.final else VALIDATION,
            COSTS,
            _shared(found),
            *_left_out(found, campaign.final),
            _told(history),
        ),
        values={
            "final": campaign.final,
            "rows": [_values(row) for row in rows],
            "tests": [{**asdict(each), "told_apart": each.told_apart} for each in verdicts],
        },
        seeds=tuple(sorted({record.seed for record in records})),
        origin=origin_of(records) if records else None,
    )


def _cells(row: Row, first: Row, further: Sequence[str]) -> tuple[Cell, ...]:
    ended = (_ending(row, "last", "test"), _ending(row, "averaged", "test"))
    tested = (_mean(row.tests), *ended, _printed(row), against_paper(row)) if row.final else ()
    costs_of_row: tuple[Cell, ...] = costs(row.ended) if row.ended else (None, None, None)
    parameters = row.ended[0].parameters if row.ended else None
    against = "the first" if row is first else against_first(row, first)
    data, metric = row.problem
    counted = (data, row.label, len(row.ended), metric, _mean(row.vals), _ending(row, "averaged", "val"))
    others = tuple(_mean(row.further_values(ending, name)) for name in further for ending in ENDINGS)
    return (*counted, *others, *tested, against, parameters, *costs_of_row, _links(row))


def against_first(row: Row, first: Row) -> str:
    """What the test between a row and the first one of its data set says."""
    if first.judged_metric != row.judged_metric:
        return f"no test: it is judged by {row.judged_metric}, the first by {first.judged_metric}"
    found, one, other = welch(first.judged, row.judged), first.values, row.values
    return _worded(found, fmean(other) - fmean(one), row.judged_metric) if found.told_apart else str(found)


def against_paper(row: Row) -> str | None:
    """What the test between a row and the printed mean ± s.d. says; None where it does not apply."""
    if row.changed or len(row.paper) != 2 or len(row.tests) < 2:
        return None
    ours, printed = sample(row.tests), Sample(*row.paper, PAPER_RUNS)
    if ours.deviation == printed.deviation == 0:
        return None
    p = t_test(ours, printed, higher_is_better=True, equal_variance=False).two_sided
    found = Verdict(row.label, "the paper", p)
    return _worded(found, ours.mean - printed.mean, row.problem[1]) if found.told_apart else str(found)


def _worded(found: Verdict, difference: float, metric: str) -> str:
    """A difference that is told apart: better or worse, where the direction of the metric is known."""
    higher = direction(metric)
    if higher is None:
        return str(found)
    return f"{'better' if (difference > 0) == higher else 'worse'}, p = {found.p:.2g}"


def _mean(values: Sequence[float]) -> str | None:
    return plus_minus(values) if values else None


def _ending(row: Row, name: str, split: str) -> str | None:
    """A metric of what the runs end with, and of how many runs where not all records have it."""
    values = row.ending(name, split)
    return _mean(values) if len(values) in (0, len(row.ended)) else f"{_mean(values)}, n = {len(values)}"


def _printed(row: Row) -> str | None:
    shown = " ± ".join(f"{value:.{digits}g}" for value, digits in zip(row.paper, (4, 2), strict=False))
    return f"{shown}, unchanged" if shown and row.changed else shown or None


def _links(row: Row) -> str | None:
    """The records that the numbers of a row come from, or will."""
    kept = [each.planned for each in row.runs if each.record is not None]
    return ", ".join(f"[seed {each.seed}](runs/{each.name}/record.json)" for each in kept) or None


def _values(row: Row) -> dict[str, object]:
    """Every number of a row, by record."""
    return {
        "data": row.problem[0],
        "label": row.label,
        "metric": row.problem[1],
        "paper": row.paper,
        "runs": [_run_values(each, row.final) for each in row.runs],
    }


def _run_values(run: Progress, final: bool) -> dict[str, object]:
    """The metrics of a run; of the test split only where the campaign is final."""
    record, splits = run.record, ("val", "test") if final else ("val",)
    best = None if record is None else record.best
    endings: dict[str, Ending | None] = {name: None if record is None else getattr(record, name) for name in ENDINGS}
    return {
        "record": f"runs/{run.planned.name}/record.json",
        "seed": run.planned.seed,
        "state": run.state,
        "epochs": run.done,
        "best_epoch": None if best is None else best.epoch,
        **{split: defined(best, split) for split in splits},
        **{name: {split: defined(ending, split) for split in splits} for name, ending in endings.items()},
        "metrics": {
            name: {split: ending.metrics[split] for split in splits if split in ending.metrics}
            for name, ending in endings.items()
            if ending is not None and ending.metrics is not None
        },
    }


def _left_out(found: Sequence[Progress], final: bool) -> tuple[str, ...]:
    """Runs that do not count: failed ones with their sentences, and how far the others are."""
    lines = [f"- {each.planned.name} failed: {each.failure}" for each in found if each.state == FAILED]
    lines += [
        f"- {each.planned.name}: {each.state} after {each.done} of {each.epochs} epochs"
        + (", without a finite metric" if each.state == DONE else "")
        for each in found
        if each.state != FAILED and each.done and not counts_in(each, final)
    ]
    return ("Not counted:\n\n" + "\n".join(lines),) if lines else ()


def _shared(found: Sequence[Progress]) -> str:
    """What the labels of rows leave out."""
    changes = [each for each in found[0].planned.changes if all(each in other.planned.changes for other in found)]
    precisions = {each.planned.precision for each in found}
    values = [*(f"`{each}`" for each in changes), *(f"precision {each}" for each in precisions if len(precisions) == 1)]
    return f"Shared by all runs: {', '.join(values) or 'nothing'}."


def _told(history: Sequence[Event]) -> str:
    lines = [f"- {each.time}: {each.event}" + (f", {len(each.runs)} runs" if each.runs else "") for each in history]
    return "History:\n\n" + "\n".join(lines)


def _draw(campaign: Campaign, rows: Sequence[Row]) -> Figure:
    """A panel for each data set: every seed a dot, the mean a bar, the first row's a line, the printed one a square."""
    problems = dict.fromkeys(row.problem for row in rows)
    panels = [[row for row in rows if row.problem == problem] for problem in problems]
    heights = [1.0 + 0.4 * len(panel) for panel in panels]
    figure = new_figure(0.8 + sum(heights))
    axes = figure.subplots(len(panels), squeeze=False, height_ratios=heights)[:, 0]
    for place, panel in zip(axes, panels, strict=True):
        _draw_panel(place, panel, campaign.final)
    if campaign.final and any(row.paper for row in rows):
        axes[0].errorbar([], [], xerr=[], fmt="s", color="tab:gray", markersize=4, label="printed, mean ± s.d.")
        figure.legend(fontsize=8, loc="outside lower right")
    figure.suptitle(campaign.shows, fontsize=11, wrap=True)
    return figure


def _draw_panel(axes: Axes, rows: Sequence[Row], final: bool) -> None:
    if rows[0].judged.values:
        axes.axvline(fmean(rows[0].judged.values), color="tab:gray", linewidth=0.8, linestyle="--")
    for place, row in enumerate(rows):
        values = row.judged.values
        axes.plot(values, [place] * len(values), "o", color="tab:blue", alpha=0.6)
        if values:
            axes.plot(fmean(values), place, "|", color="tab:blue", markersize=16, markeredgewidth=2)
        if final and row.paper:
            spread = row.paper[1] if len(row.paper) > 1 else None
            axes.errorbar(row.paper[0], place + 0.25, xerr=spread, fmt="s", color="tab:gray", markersize=4)
    axes.set_yticks(
        range(len(rows)), [fill(row.label, LABEL_WIDTH, break_long_words=False) for row in rows], fontsize=7
    )
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.tick_params(axis="x", labelsize=8)
    data, metric, split = rows[0].problem[0], rows[0].judged_metric, "test" if final else "validation"
    axes.set_xlabel(f"{data}: {split} {metric}, each seed; bar: mean; dashed: that of the first", fontsize=8)
    axes.grid(axis="x", alpha=0.3)
