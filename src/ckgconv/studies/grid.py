"""A grid of recipes × seeds, each a run that is kept and resumed: what the ablations share.

Runs are kept by recipe, not by study: the published recipe, which is a row of nearly every table, is trained once.
A shortened protocol (`--epochs`) shortens the warm-up by the same factor and the title of its column says so. The
record.json of a finished run is enough: tables can be made again on a machine that trained none of the runs. So a
campaign may train a grid, and the folder of its runs is given as `--keep`.

Legend: V variants, S seeds.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckgconv.checks import InputError, require
from ckgconv.data import load
from ckgconv.engine.record import Record, read_record, write_record
from ckgconv.engine.run import train
from ckgconv.recipe import Recipe, SamplingRecipe
from ckgconv.studies.outcomes import epoch_seconds, origin_of, trained_recipe
from ckgconv.studies.processes import in_processes
from ckgconv.studies.report import Cell, Options, Report, new_figure
from ckgconv.studies.t_test import sample, t_test
from ckgconv.tasks.metrics import METRICS

SEEDS = (0, 1, 2, 3)
# Fields added to recipes later: left out of the digest at these values, so that earlier runs are still found.
ATTRIBUTES: list[tuple[str, object]] = [("normalise", "none"), ("dropout", 0.0)]
LATER: dict[str, list[tuple[str, object]]] = {
    "": [("given", ())],
    "data": [
        *(("split_number", 0), ("folds", None), ("fold", 0), ("most_atoms", 1000)),
        *(("features", ()), ("descriptors", "none"), ("classes", ()), ("cluster_distance", 0.4)),
        *(("split_sizes", (0.8, 0.1, 0.1)), ("split_column", ""), ("group_column", ""), ("weight_column", "")),
    ],
    "model": [
        ("kind", "ckgcn"),
        ("flow", "source_to_target"),
        ("drop_path", 0.0),
        ("coordinate_features", 0),
        ("size_features", False),
        ("relative_positions", False),
        ("node_dropout", 0.0),
        ("graph_features", 0),
    ],
    "model.node": ATTRIBUTES,
    "model.edge": ATTRIBUTES,
    "model.head": [("dropout", 0.0), ("activation", "model"), ("scale", 1.0)],
    "training": [
        ("optimizer", "adamw"),
        ("momentum", 0.9),
        ("huber_delta", 1.0),
        ("sampling", asdict(SamplingRecipe())),
        ("ema_decay", 0.0),
        ("smooth_validation", 1),
        ("norm_statistics", "running"),
        ("draws", 1),
        ("consistency", 0.0),
        ("sharpening", 0.5),
        ("select", "metric"),
        ("schedule", "cosine"),
        ("cooldown", 0.2),
        *(("focal_gamma", 2.0), ("class_balance", False), ("metrics", ()), ("mixed", ()), ("mixed_outputs", ())),
        *(("init", ""), ("freeze", 0)),
    ],
}
# p below which two variants are distinguished.
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Variant:
    """One row of an ablation: a recipe, and what the paper reports for it."""

    label: str
    recipe: Recipe
    paper: tuple[float, float] | None = None  # test metric, mean and s.d. of 4 runs
    paper_cost: tuple[float, float] | None = None  # seconds per epoch, MB; on the paper's card


@dataclass(frozen=True)
class Published:
    """A row of another method: what was published for it, mean and s.d."""

    label: str
    paper: tuple[float, float]


@dataclass(frozen=True)
class Outcome:
    """The runs of a variant."""

    variant: Variant
    records: list[Record]  # one per seed, all tested

    @property
    def tests(self) -> list[float]:
        """Test metric at the best validation epoch, per seed."""
        return [record.test for record in self.records if record.test is not None]

    @property
    def epoch_seconds(self) -> float:
        """Median seconds of a training epoch."""
        found = epoch_seconds(self.records)
        assert found is not None  # all are tested
        return found

    @property
    def memory_mb(self) -> int:
        return max(record.peak_memory_mb for record in self.records)


def run_grid(variants: Sequence[Variant], options: Options) -> list[Outcome]:
    """Train every variant with every seed; finished runs are read, interrupted ones resumed."""
    seeds = options.seeds or SEEDS
    tasks = [(shortened(variant.recipe, options.epochs), seed) for variant in variants for seed in seeds]
    others = _others(options)
    kept = [_kept(*task, options) or others.get((digest(task[0]), task[1])) for task in tasks]
    missing = [task for task, record in zip(tasks, kept, strict=True) if record is None]
    runs = partial(_trained, options=options)
    serial = options.workers == 1 or not missing
    trained = iter([runs(*task) for task in missing] if serial else _concurrently(runs, missing, options))
    records = [record or next(trained) for record in kept]
    each = len(seeds)
    return [Outcome(variant, records[place * each :][:each]) for place, variant in enumerate(variants)]


def _concurrently(runs: Callable[..., Any], tasks: list[tuple[Recipe, int]], options: Options) -> list[Record]:
    """While one run starts, compiles or is tested, others train."""
    for data in {recipe.data for recipe, _ in tasks}:
        load(data, options.data_dir)  # packed once, not by several processes at a time
    on_cpu = options.device == "cpu" or not torch.cuda.is_available()
    threads = max(1, torch.get_num_threads() // options.workers)
    # Peak memory on a CPU is that of the whole process.
    return in_processes(runs, tasks, options.workers, threads, per_process=1 if on_cpu else None)


def run_folder(recipe: Recipe, seed: int, options: Options) -> Path:
    """Where a run of the grid is kept."""
    keep = options.keep or Path("runs") / "studies"
    return keep / f"{recipe.data.name}-{digest(recipe)}-{recipe.training.epochs}-{seed}"


def _kept(recipe: Recipe, seed: int, options: Options) -> Record | None:
    """The record of a finished run, None where it must be trained."""
    folder = run_folder(recipe, seed, options)
    record = finished_record(folder)
    require(
        record is None or record.precision == options.precision,
        f"{folder} was not trained with precision {options.precision}: give the --precision that its record.json "
        f"names, or another folder with --keep.",
    )
    return record


def _others(options: Options) -> dict[tuple[str, int], Record]:
    """Finished runs of the right precision by recipe and seed, whatever their folders are called, as in a campaign."""
    found = {}
    for file in sorted(options.keep.glob("*/record.json")) if options.keep is not None else ():
        record = finished_record(file.parent)
        if record is not None and record.precision == options.precision:
            with suppress(InputError):  # a recipe of another version
                found[digest(trained_recipe(record)), record.seed] = record
    return found


def _trained(recipe: Recipe, seed: int, options: Options) -> Record:
    """The record of a run, started or resumed; it names the number of concurrent runs, which affects its times."""
    folder = run_folder(recipe, seed, options)
    record = train(
        recipe,
        seed,
        data=options.data_dir,
        folder=folder,
        resume=folder.exists(),
        device=options.device,
        precision=options.precision,
    ).record
    record.at_once = options.workers
    write_record(folder, record)
    return record


def finished_record(folder: Path) -> Record | None:
    """The record of a run that has been tested, which is the last thing a run does; None for any other."""
    record = read_record(folder)
    return None if record is None or record.test is None else record


def digest(recipe: Recipe) -> str:
    """Eight characters that identify all values of a recipe."""
    values = asdict(recipe)
    for path, later in LATER.items():
        group: dict[str, Any] = values
        for name in filter(None, path.split(".")):
            group = group[name]
        for name, value in later:
            if group.get(name) == value:
                del group[name]
    return sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()[:8]


def shortened(recipe: Recipe, epochs: int | None) -> Recipe:
    """The recipe with this number of epochs and its warm-up shortened by the same factor; unchanged where None."""
    if epochs is None:
        return recipe
    training = recipe.training
    warmup = round(training.warmup_epochs * epochs / training.epochs)
    return replace(recipe, training=replace(training, epochs=epochs, warmup_epochs=min(warmup, epochs)))


def grid_report(
    title: str,
    outcomes: Sequence[Outcome],
    options: Options,
    notes: tuple[str, ...],
    published: Sequence[Published] = (),
) -> Report:
    """Paper's test metric and ours, parameters, seconds per epoch and memory of each variant."""
    training = outcomes[0].variant.recipe.training
    metric = training.metric.upper() if training.metric == "mae" else training.metric.replace("_", " ")
    epochs = options.epochs or training.epochs
    protocol = f"ours ({epochs} epochs" + (", shortened)" if options.epochs else ")")
    reference = best_of(outcomes)
    records = [record for outcome in outcomes for record in outcome.records]
    at_once = max(record.at_once or 1 for record in records)
    time = "s/epoch" if at_once == 1 else f"s/epoch, {at_once} at once"
    columns = ("variant", f"{metric}, paper", f"{metric}, {protocol}", "p", "parameters", time, "MB")
    rows = [_row(outcome, reference) for outcome in outcomes]
    rows += [(other.label, _printed(other.paper), *[None] * (len(rows[0]) - 2)) for other in published]
    costs = ("s/epoch, paper", "MB, paper") if any(outcome.variant.paper_cost for outcome in outcomes) else ()
    return Report(
        title=title,
        columns=(*columns, *costs),
        rows=[row[: len(columns) + len(costs)] for row in rows],
        figure=_draw(title, outcomes, published, metric, protocol),
        notes=(*notes, _protocol(training.epochs, options), _tested(reference), _costs(at_once)),
        values={each.variant.label: [_summary(record) for record in each.records] for each in outcomes},
        seeds=options.seeds or SEEDS,
        origin=origin_of(records),
    )


def plus_minus(values: Sequence[float]) -> str:
    """Mean ± s.d. as in the t-test, dividing by n - 1; for one run the value alone."""
    return f"{mean(values):.4f}" + (f" ± {stdev(values):.4f}" if len(values) > 1 else "")


def best_of(outcomes: Sequence[Outcome]) -> Outcome:
    """The variant with the best mean test metric."""
    metric = outcomes[0].variant.recipe.training.metric
    sign = 1 if METRICS[metric].higher_is_better else -1
    return max(outcomes, key=lambda outcome: sign * mean(outcome.tests))


def distinguished(one: Outcome, other: Outcome) -> bool:
    """Whether their runs differ by more than chance; never where no t-test applies, as for single runs."""
    found = probability(one, other)
    return found is not None and found < SIGNIFICANT


def _row(outcome: Outcome, reference: Outcome) -> tuple[Cell, ...]:
    variant = outcome.variant
    seconds, memory = variant.paper_cost or (None, None)
    paper = None if variant.paper is None else _printed(variant.paper)
    parameters = outcome.records[0].parameters
    cost = (round(outcome.epoch_seconds, 3), outcome.memory_mb, seconds, memory)
    return (variant.label, paper, plus_minus(outcome.tests), probability(outcome, reference), parameters, *cost)


def _printed(paper: tuple[float, float]) -> str:
    return f"{paper[0]:.4g} ± {paper[1]:.2g}"


def probability(outcome: Outcome, reference: Outcome) -> float | None:
    """Of such a difference between runs of one variant; None for one run, or where no run differs."""
    one, other = outcome.tests, reference.tests
    if outcome is reference or min(len(one), len(other)) < 2 or len({*one}) == len({*other}) == 1:
        return None
    metric = outcome.variant.recipe.training.metric
    return round(t_test(sample(one), sample(other), METRICS[metric].higher_is_better).two_sided, 3)


def _summary(record: Record) -> dict[str, Any]:
    kept = ("seed", "commit", "device", "precision", "parameters", "best", "wall_s", "peak_memory_mb")
    values = record.to_json()
    return {name: values[name] for name in kept}


def _protocol(epochs: int, options: Options) -> str:
    seeds = options.seeds or SEEDS
    short = "" if options.epochs is None else f" Shortened from {epochs} to {options.epochs} epochs, warm-up too."
    spread = f"mean ± s.d. (dividing by n - 1) of {len(seeds)} seeds" if len(seeds) > 1 else "one seed"
    return f"Test metric at the best validation epoch, {spread}, precision {options.precision}.{short}"


def _tested(reference: Outcome) -> str:
    runs = len(reference.tests)
    if runs == 1:
        return "p: none, single runs of each variant distinguish nothing."
    return f"p: two-sided t-test against {reference.variant.label}, the best mean, {runs} runs each."


def _costs(at_once: int) -> str:
    """How the last columns were measured."""
    together = "" if at_once == 1 else f" Up to {at_once} runs shared the device: their times are no benchmark."
    return (
        "s/epoch: median over all epochs of a variant. MB: the largest peak of a run from its start on, preparing the "
        f"data included; a resumed run has that of its last part.{together}"
    )


def _draw(
    title: str, outcomes: Sequence[Outcome], published: Sequence[Published], metric: str, protocol: str
) -> Figure:
    labels = [*(outcome.variant.label for outcome in outcomes), *(other.label for other in published)]
    figure = new_figure(0.45 * len(labels) + 1.6)
    axes: Axes = figure.subplots()
    for place, outcome in enumerate(outcomes):
        axes.plot(outcome.tests, [place] * len(outcome.tests), "o", color="tab:blue", alpha=0.6)
        axes.plot(mean(outcome.tests), place, "|", color="tab:blue", markersize=18, markeredgewidth=2)
    papers = [outcome.variant.paper for outcome in outcomes] + [other.paper for other in published]
    for place, paper in enumerate(papers):
        if paper is not None:
            axes.errorbar(paper[0], place + 0.22, xerr=paper[1], fmt="s", color="tab:gray", markersize=5)
    axes.plot([], [], "o", color="tab:blue", label=f"{protocol}, each seed; bar: mean")
    axes.errorbar([], [], xerr=[], fmt="s", color="tab:gray", label="published, mean ± s.d.")
    axes.set_yticks(range(len(labels)), labels)
    axes.invert_yaxis()
    axes.set_xlabel(f"test {metric}")
    axes.set_title(title, fontsize=11, wrap=True)
    axes.margins(y=0.12)
    figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    return figure
