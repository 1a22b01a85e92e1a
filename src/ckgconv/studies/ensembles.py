"""Ensembles of four: of GRIT, of CKGCN, and mixed, two of each (the paper's table of ensembles on ZINC).

    prediction of an ensemble = mean of the predictions of its members

Two ways to form ensembles from n runs of a kind: every set of distinct members, and bootstrap draws, in which members
are drawn with replacement, so that one may count twice. The paper employs bootstrapping without saying how many runs it
draws from. Each run predicts the test split once; what it predicted is kept in the folder of the page.

Legend: n runs of a kind, M rows, T outputs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from ckgconv.checks import require
from ckgconv.engine.ensemble import metric_of
from ckgconv.recipe import Recipe
from ckgconv.studies.grid import plus_minus
from ckgconv.studies.kept_predictions import Kept, check_same, kept_predictions
from ckgconv.studies.main_table import read_runs
from ckgconv.studies.outcomes import origin_of
from ckgconv.studies.printed import RESULTS, printed_sample
from ckgconv.studies.printed_table import DATA_SETS
from ckgconv.studies.report import Cell, Options, Report, new_figure
from ckgconv.tasks.given import task_of

RUNS = Path("results")
PAGE = Path("results/studies/ensembles")
# Kind of a model → its name in the paper.
KINDS = {"grit": "GRIT", "ckgcn": "CKGCN"}
SIZE = 4
DRAWS = 1000
SEED = 0  # of the draws
NOTE = f"""\
An ensemble predicts the mean of the predictions of its members. Distinct members: mean ± s.d. (dividing by n - 1) over
all sets of members without repetition, with their number in brackets; such sets share members, so their s.d. is
smaller than that of independent ensembles. Bootstrapped: {DRAWS:,} draws of as many members with replacement. The paper
says that its numbers are bootstrapped, but not from how many runs. No t-test is made, since ensembles that share
members are not independent. Parameters: of one ensemble of distinct members."""
# For each kind, the numbers of the members among its runs, ascending.
Choice = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Composition:
    """How many members of each kind an ensemble has."""

    name: str  # as in the paper's table
    members: dict[str, int]  # kind → how many


TABLE = (
    Composition("GRIT ensemble", {"grit": SIZE}),
    Composition("CKGCN ensemble", {"ckgcn": SIZE}),
    Composition("mixed ensemble", {"grit": SIZE // 2, "ckgcn": SIZE // 2}),
)


@dataclass(frozen=True)
class Outcome:
    """The test metric of the ensembles of one composition; empty where there is no run of a kind."""

    composition: Composition
    members: dict[str, int]  # what each of the distinct ensembles consists of: fewer than wanted where runs are missing
    distinct: tuple[float, ...]  # of every ensemble of distinct members, or of some where they are too many
    drawn: tuple[float, ...]  # of bootstrap draws; empty with a single run of each kind
    alone: tuple[float, ...]  # of each run
    parameters: int | None  # of an ensemble


def ensembles(options: Options) -> Report:
    """GRIT, CKGCN and mixed ensembles of finished runs."""
    folders = {"grit": options.grit, "ckgcn": options.ckgcn}
    if not any(folders.values()):
        folders = default_runs()
    require(
        any(folders.values()),
        f"No run of zinc or zinc-grit with its weights is under {RUNS}: train some, or name them with --ckgcn RUN … "
        f"--grit RUN ….",
    )
    kept = {kind: kept_predictions(kind, paths, options, options.out or PAGE) for kind, paths in folders.items()}
    every = [each for runs in kept.values() for each in runs]
    check_same(every)
    chosen = every[0].recipe
    outcomes = [outcome_of(composition, kept, chosen) for composition in TABLE]
    title = finding(outcomes, chosen)
    return Report(
        title=title,
        columns=("ensemble", "paper", "distinct members", "bootstrapped", "each run alone", "parameters"),
        rows=[row(outcome, chosen) for outcome in outcomes],
        figure=draw(outcomes, chosen, title),
        notes=(missing(kept), NOTE, predicted_note(every)),
        values={
            "metric": chosen.training.metric,
            "runs": {kind: {str(each.folder): each.value for each in runs} for kind, runs in kept.items()},
            "ensembles": {
                each.composition.name: {"members": each.members, "distinct": each.distinct, "drawn": each.drawn}
                for each in outcomes
            },
        },
        seeds=tuple(sorted({each.record.seed for each in every})),
        origin=origin_of([each.record for each in every]),
    )


def default_runs() -> dict[str, tuple[Path, ...]]:
    """Finished runs of the unchanged recipes under `RUNS` that have their weights."""
    found = read_runs((RUNS,)).runs if RUNS.is_dir() else {}
    members = {kind: found.get(("zinc", name), []) for kind, name in KINDS.items()}
    return {
        kind: tuple(each.path for each in runs if (each.path / "best.safetensors").exists())
        for kind, runs in members.items()
    }


def outcome_of(composition: Composition, kept: dict[str, list[Kept]], chosen: Recipe) -> Outcome:
    """All ensembles of one composition."""
    runs = {kind: kept[kind] for kind in composition.members}
    alone = tuple(each.value for group in runs.values() for each in group)
    if not all(runs.values()):
        return Outcome(composition, {}, (), (), alone, None)
    groups = [torch.stack([each.outcome for each in group]) for group in runs.values()]
    wanted = tuple(composition.members.values())
    present = tuple(min(count, len(group)) for count, group in zip(wanted, groups, strict=True))
    target, task = next(iter(runs.values()))[0].target, task_of(chosen.training)
    known: dict[Choice, float] = {}

    def value(choice: Choice) -> float:
        """Metric of the mean over the members of these numbers, for each kind."""
        if choice not in known:
            members = torch.cat([group[list(numbers)] for group, numbers in zip(groups, choice, strict=True)])
            known[choice] = metric_of(task, members.mean(0), target)
        return known[choice]

    sizes = [len(group) for group in groups]
    several = any(size > 1 for size in sizes)
    parameters = [
        count * fmean(each.record.parameters for each in group)
        for count, group in zip(present, runs.values(), strict=True)
    ]
    return Outcome(
        composition,
        dict(zip(composition.members, present, strict=True)),
        tuple(value(choice) for choice in distinct_choices(sizes, present)),
        tuple(value(choice) for choice in drawn_choices(sizes, wanted)) if several else (),
        alone,
        round(sum(parameters)),
    )


def distinct_choices(sizes: Sequence[int], members: Sequence[int]) -> list[Choice]:
    """All ways to choose distinct members of each kind; `DRAWS` of them at random where there are more."""
    if prod(comb(size, count) for size, count in zip(sizes, members, strict=True)) <= DRAWS:
        choices = [combinations(range(size), count) for size, count in zip(sizes, members, strict=True)]
        return list(product(*choices))
    generator = np.random.default_rng(SEED)
    return [_choice(generator, sizes, members, replace=False) for _ in range(DRAWS)]


def drawn_choices(sizes: Sequence[int], members: Sequence[int]) -> list[Choice]:
    """`DRAWS` bootstrap draws."""
    generator = np.random.default_rng(SEED)
    return [_choice(generator, sizes, members, replace=True) for _ in range(DRAWS)]


def _choice(generator: np.random.Generator, sizes: Sequence[int], members: Sequence[int], replace: bool) -> Choice:
    drawn = (generator.choice(size, count, replace) for size, count in zip(sizes, members, strict=True))
    return tuple(tuple(sorted(numbers.tolist())) for numbers in drawn)


def row(outcome: Outcome, chosen: Recipe) -> tuple[Cell, ...]:
    """A composition as a row of the table."""
    return (
        described(outcome),
        printed(outcome, chosen),
        counted(outcome.distinct),
        plus_minus(outcome.drawn) if outcome.drawn else None,
        counted(outcome.alone),
        outcome.parameters,
    )


def described(outcome: Outcome) -> str:
    """The name of a composition, and of what it consists where that is less than wanted."""
    if not outcome.members:
        return outcome.composition.name
    words = " + ".join(f"{count} {KINDS[kind]}" for kind, count in outcome.members.items())
    short = outcome.members != outcome.composition.members
    return f"{outcome.composition.name}, {'only ' if short else ''}{words}"


def counted(values: Sequence[float]) -> str | None:
    """Mean ± s.d., and of how many."""
    return f"{plus_minus(values)} ({len(values)})" if values else None


def printed(outcome: Outcome, chosen: Recipe) -> str | None:
    """What the paper prints for a composition on this data set."""
    return RESULTS.get(DATA_SETS.get(chosen.data.name, ""), {}).get(outcome.composition.name)


def finding(outcomes: Sequence[Outcome], chosen: Recipe) -> str:
    """The title, from the numbers."""
    parts = [f"{each.composition.name} {fmean(each.distinct):.4f}" for each in outcomes if each.distinct]
    absent = [each.composition.name for each in outcomes if not each.distinct]
    without = f"; no {' and no '.join(absent)} yet" if absent else ""
    return f"Test {chosen.training.metric} of the mean prediction: {', '.join(parts)}{without}"


def missing(kept: dict[str, list[Kept]]) -> str:
    """Which runs are there, and how many more an ensemble of four needs."""
    parts = []
    for kind, runs in kept.items():
        more = SIZE - len(runs)
        lack = f"; {more} more would make an ensemble of {SIZE}" if more > 0 else ""
        parts.append(f"{KINDS[kind]}: {len(runs)} run{'' if len(runs) == 1 else 's'}{lack}")
    return f"{'. '.join(parts)}."


def predicted_note(every: Sequence[Kept]) -> str:
    """Where the predictions are."""
    seconds = sum(each.seconds for each in every)
    return (
        f"Predictions for the test split are kept in `predictions`, one file for each run, and computed once; opening "
        f"and predicting took {seconds:.1f} s for {len(every)} runs."
    )


def draw(outcomes: Sequence[Outcome], chosen: Recipe, title: str) -> Figure:
    """Every run, every ensemble of distinct members, bootstrap draws, and the paper's numbers."""
    figure = new_figure(3.6)
    axes: Axes = figure.subplots()
    for place, outcome in enumerate(outcomes):
        axes.plot(outcome.alone, [place - 0.24] * len(outcome.alone), "o", color="tab:gray", fillstyle="none")
        axes.plot(outcome.distinct, [place - 0.08] * len(outcome.distinct), "o", color="tab:blue", alpha=0.6)
        if outcome.drawn:
            axes.errorbar(
                fmean(outcome.drawn), place + 0.08, xerr=stdev(outcome.drawn), fmt="d", color="tab:blue", capsize=3
            )
        text = printed(outcome, chosen)
        if text is not None:
            paper = printed_sample(text)
            axes.errorbar(paper.mean, place + 0.24, xerr=paper.deviation, fmt="s", color="tab:orange", capsize=3)
    axes.plot([], [], "o", color="tab:gray", fillstyle="none", label="a run alone")
    axes.plot([], [], "o", color="tab:blue", alpha=0.6, label="an ensemble of distinct members")
    axes.plot([], [], "d", color="tab:blue", label="bootstrap draws, mean ± s.d.")
    axes.plot([], [], "s", color="tab:orange", label="paper, mean ± s.d.")
    axes.set_yticks(range(len(outcomes)), [described(each).replace(", ", "\n") for each in outcomes], fontsize=9)
    axes.set_ylim(len(outcomes) - 0.5, -0.5)
    axes.set_xlabel(f"test {chosen.training.metric}")
    axes.grid(axis="x", alpha=0.3)
    figure.suptitle(title, fontsize=10, wrap=True)
    figure.legend(fontsize=8, loc="outside lower center", ncols=4)
    return figure
