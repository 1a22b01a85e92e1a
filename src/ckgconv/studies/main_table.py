"""The paper's tables of benchmarks, methods × data sets, with the results of our own runs next to the printed ones.

Read are the records of finished runs under a folder. A run counts where its recipe is that of its name, unchanged:
shortened runs and variants are left out, and the page says so.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record, load_record
from ckgconv.recipes import RECIPES, recipe
from ckgconv.studies.groups import Member
from ckgconv.studies.outcomes import origin_of, trained_recipe
from ckgconv.studies.printed import printed_sample
from ckgconv.studies.printed_table import DATA_SETS, PRINTED
from ckgconv.studies.report import Cell, Options, Report, markdown_table, new_figure
from ckgconv.studies.significance import LEVEL
from ckgconv.studies.t_test import Sample, sample, t_test
from ckgconv.tasks.metrics import METRICS

RUNS = Path("results")
# End of a recipe's name → the name of its network, and those of the paper's rows for it.
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "": ("CKGCN", ("CKGCN",)),
    "grit": ("GRIT", ("GRIT",)),
    "gps": ("GPS", ("GPS",)),
    "pna": ("PNA", ("PNA",)),
    "gatedgcn": ("GatedGCN", ("GatedGCN",)),
    "gatv2": ("GATv2", ()),
    "gine": ("GINE", ("GINE",)),
    "gcn": ("GCN", ("GCN",)),
    "graphormer": ("Graphormer", ("Graphormer",)),
    "san": ("SAN", ("SAN",)),
    "gatedgcn-plus": ("GatedGCN+", ()),
    "gine-plus": ("GINE+", ()),
    "gcn-plus": ("GCN+", ()),
}
REPEATED = "of a seed that a later folder has"
DEMONSTRATIONS = ("zinc-demo",)
IN_PERCENT = ("accuracy", "sbm_accuracy")
NOTE = """\
Printed: mean ± s.d. of 4 runs, as in the paper. Ours: the test metric at the best validation epoch, mean ± s.d.
(dividing by n - 1), with the number of runs n in brackets, one for each seed; they count alike whatever their precision
and commit. p: Welch's two-sided t-test against the printed numbers,
of entries with two runs or more; they differ where p < 0.05. The paper's GIN and GAT read no edge attributes, so
GINE and GATv2 of ours are not compared with them. PATTERN and CLUSTER may have been drawn anew; what is next to the
runs says so."""


@dataclass
class Found:
    """Runs by data set and method, and what was left out: reason → runs."""

    runs: dict[tuple[str, str], list[Member]] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Entry:
    """A method on a data set: our runs, and what the paper prints."""

    data: str  # as the paper writes it
    method: str
    values: tuple[float, ...]  # in the paper's unit
    printed: str | None
    higher_is_better: bool

    @property
    def shown(self) -> str:
        """Mean ± s.d. and the number of runs."""
        decimals = 2 if fmean(self.values) > 1 else 4
        spread = f" ± {sample(self.values).deviation:.{decimals}f}" if len(self.values) > 1 else ""
        return f"{fmean(self.values):.{decimals}f}{spread} ({len(self.values)})"

    @property
    def p(self) -> float | None:
        """Of Welch's test against the printed numbers; None where it does not apply."""
        if self.printed is None or len(self.values) < 2:
            return None
        return t_test(sample(self.values), printed_sample(self.printed), self.higher_is_better, False).two_sided


def main_table(options: Options) -> Report:
    """Our rows of the paper's tables."""
    folders = options.runs or (RUNS,)
    found = read_runs(folders)
    require(
        bool(found.runs),
        f"No finished run of an unchanged benchmark recipe is under {' or '.join(map(str, folders))}: train one, such "
        f"as 'ckgconv train zinc --out results/main-table/zinc-seed0', or name another folder with --runs.",
    )
    entries = [entry(data, method, members) for (data, method), members in sorted(found.runs.items(), key=placed)]
    title = finding(entries)
    every = [member.record for members in found.runs.values() for member in members]
    return Report(
        title=title,
        columns=("method", *DATA_SETS.values()),
        rows=table_rows(entries),
        figure=draw(entries, title),
        notes=(markdown_table(("data set", "method", "ours", "paper", "p"), compared(entries)), NOTE, left_out(found)),
        values={
            "runs": {f"{each.data}, {each.method}": each.values for each in entries},
            "left_out": found.left_out,
        },
        seeds=tuple(sorted({record.seed for record in every})),
        origin=origin_of(every),
    )


def read_runs(folders: Sequence[Path]) -> Found:
    """All records under the folders; of several runs with one seed the last, since they are no independent draws."""
    found = Found()
    counted: dict[tuple[str, str, int], Member] = {}
    for folder in folders:
        require(folder.is_dir(), f"{folder} is not a folder: name one that holds runs with --runs.")
        for path in sorted(folder.rglob("record.json"), key=weights_last):
            try:
                record = load_record(path)
                reason = why_left_out(record)
            except InputError:
                found.left_out.setdefault("cannot be read by this version", []).append(str(path.parent))
                continue
            if reason is not None:
                found.left_out.setdefault(reason, []).append(str(path.parent))
                continue
            draw = (record.data_name, method_of(record), record.seed)
            before = counted.get(draw)
            if before is not None and not copies(before.record, record):
                found.left_out.setdefault(REPEATED, []).append(str(before.path))
            counted[draw] = Member(path.parent, record)
    for (data, method, _), member in sorted(counted.items()):
        found.runs.setdefault((data, method), []).append(member)
    return found


def copies(one: Record, other: Record) -> bool:
    """Whether two records of one recipe and seed are of the same run."""
    return (one.best, one.wall_s) == (other.best, other.wall_s)


def weights_last(path: Path) -> tuple[bool, Path]:
    """Order of records: of two copies of a run, the one that can predict comes last."""
    return (path.parent / "best.safetensors").exists(), path


def why_left_out(record: Record) -> str | None:
    """Why a run is no entry of the table; None where it is one."""
    if record.data_name not in DATA_SETS:
        return "not of the paper's data sets"
    if record.recipe_name in DEMONSTRATIONS:
        return "a demonstration"
    if record.test is None:
        return "trained without a test" if record.ended else "unfinished"
    own = trained_recipe(record)
    if record.recipe_name not in RECIPES:
        return "of a recipe that is not installed"
    named = recipe(record.recipe_name)
    unchanged = replace(own, paper_test=named.paper_test) == named
    return None if unchanged else "of a changed or shortened recipe"


def method_of(record: Record) -> str:
    """The network of a recipe's name: CKGCN for "zinc", GRIT for "zinc-grit", "hybrid" for "zinc-hybrid"."""
    ending = record.recipe_name.removeprefix(record.data_name).removeprefix("-")
    return METHODS[ending][0] if ending in METHODS else ending


def entry(data: str, method: str, members: Sequence[Member]) -> Entry:
    """A cell of the table."""
    name, metric = DATA_SETS[data], members[0].record.metric
    scale = 100.0 if metric in IN_PERCENT else 1.0
    values = tuple(scale * member.record.test for member in members if member.record.test is not None)
    return Entry(name, method, values, printed_for(name, method), METRICS[metric].higher_is_better)


def printed_for(data: str, method: str) -> str | None:
    """What the paper prints for a method of ours."""
    rows = next((rows for name, rows in METHODS.values() if name == method), ())
    return next((PRINTED[data][row] for row in rows if row in PRINTED[data]), None)


def placed(item: tuple[tuple[str, str], object]) -> tuple[int, int, str]:
    """Order of data sets as in the paper, of methods as above, then by name."""
    (data, method), _ = item
    names = [name for name, _ in METHODS.values()]
    return list(DATA_SETS).index(data), names.index(method) if method in names else len(names), method


def table_rows(entries: Sequence[Entry]) -> list[tuple[Cell, ...]]:
    """Printed rows in the paper's order, each of ours after its own; networks that the paper lacks at the end."""
    printed = list(dict.fromkeys(method for column in PRINTED.values() for method in column))
    cells = {(method, data): text for data, column in PRINTED.items() for method, text in column.items()}
    cells |= {(f"{each.method}, ours", each.data): each.shown for each in entries}
    names = [(float(place), method) for place, method in enumerate(printed)]
    for method in dict.fromkeys(each.method for each in entries):
        rows = next((rows for name, rows in METHODS.values() if name == method), ())
        after = max((printed.index(row) for row in rows), default=len(printed))
        names.append((after + 0.5, f"{method}, ours"))
    return [(name, *(cells.get((name, data)) for data in DATA_SETS.values())) for _, name in sorted(names)]


def compared(entries: Sequence[Entry]) -> list[tuple[Cell, ...]]:
    """Ours next to printed."""
    return [
        (each.data, each.method, each.shown, each.printed, None if each.p is None else f"{each.p:.2g}")
        for each in entries
    ]


def left_out(found: Found) -> str:
    """What does not count, in words."""
    if not found.left_out:
        return "No run was left out."
    parts = [f"{reason}: {', '.join(f'`{run}`' for run in runs)}" for reason, runs in sorted(found.left_out.items())]
    return f"Left out: {'; '.join(parts)}."


def finding(entries: Sequence[Entry]) -> str:
    """The title, from the numbers."""
    tested = [each.p for each in entries if each.p is not None]
    differing = sum(p < LEVEL for p in tested)
    several = f"{len(entries)} entries" if len(entries) > 1 else "1 entry"
    return f"The paper's tables with {several} of ours: {differing} of {len(tested)} tested differ from print"


def draw(entries: Sequence[Entry], title: str) -> Figure:
    """A panel per data set: every run a dot, means as bars, printed numbers as squares."""
    names = list(dict.fromkeys(each.data for each in entries))
    rows = -(-len(names) // 2)
    tallest = max(len(methods_of(entries, name)) for name in names)
    figure = new_figure(rows * (1.0 + 0.27 * tallest) + 0.5)
    panels = figure.subplots(rows, min(2, len(names)), squeeze=False).flatten()
    for axes in panels[len(names) :]:
        axes.set_axis_off()
    for axes, name in zip(panels, names, strict=False):
        _draw_panel(axes, name, [each for each in entries if each.data == name])
    first: Axes = panels[0]
    handles, labels = first.get_legend_handles_labels()
    figure.legend(handles, labels, fontsize=8, loc="outside lower center", ncols=2)
    figure.suptitle(title, fontsize=10, wrap=True)
    return figure


def methods_of(entries: Sequence[Entry], data: str) -> list[str]:
    """Methods of a panel: those of ours that the paper prints too, or that were run."""
    known = [name for name, _ in METHODS.values() if printed_for(data, name) is not None]
    return list(dict.fromkeys([*known, *(each.method for each in entries if each.data == data)]))


def _draw_panel(axes: Axes, data: str, entries: Sequence[Entry]) -> None:
    methods = methods_of(entries, data)
    printed = [printed_for(data, method) for method in methods]
    for place, text in enumerate(printed):
        if text is not None:
            each: Sample = printed_sample(text)
            axes.errorbar(each.mean, place, xerr=each.deviation, fmt="s", color="tab:gray", markersize=4, capsize=2)
    for mine in entries:
        above = methods.index(mine.method) - 0.3
        axes.plot(mine.values, [above] * len(mine.values), "o", color="tab:blue", alpha=0.6, markersize=5)
        axes.plot(fmean(mine.values), above, "|", color="tab:blue", markersize=12, markeredgewidth=2)
    axes.plot([], [], "o", color="tab:blue", label="ours, each run; bar: mean")
    axes.plot([], [], "s", color="tab:gray", label="paper, mean ± s.d.")
    axes.set_yticks(range(len(methods)), methods, fontsize=8)
    axes.invert_yaxis()
    axes.tick_params(axis="x", labelsize=8)
    if not entries[0].higher_is_better:  # errors differ by orders of magnitude
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 3, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_formatter("")
    axes.set_title(f"{data}, {'higher' if entries[0].higher_is_better else 'lower'} is better", fontsize=9)
    axes.grid(axis="x", alpha=0.3)
