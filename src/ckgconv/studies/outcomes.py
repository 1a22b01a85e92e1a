"""Test metrics of finished runs, and what runs cost, read from their records."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record, load_record
from ckgconv.recipe import ModelRecipe, Recipe
from ckgconv.recipes import from_json
from ckgconv.studies.report import Origin


@dataclass(frozen=True)
class Outcomes:
    """Runs of one recipe, by seed."""

    recipe: str
    data: str
    metric: str
    values: tuple[float, ...]  # test metric at the best validation epoch
    seeds: tuple[int, ...]
    paper: tuple[float, ...]  # the paper's mean and s.d. of 4 runs; empty where it has none


def read_outcomes(paths: Sequence[Path]) -> Outcomes:
    """The runs in these folders (or record.json files), which must be of one recipe and differ in their seeds."""
    records = [load_record(path) for path in paths]
    values = tuple(tested(record, path) for record, path in zip(records, paths, strict=True))
    recipes = {record.recipe_name for record in records}
    require(
        len(recipes) == 1, f"The runs are of different recipes ({', '.join(sorted(recipes))}): compare one at a time."
    )
    seeds = tuple(record.seed for record in records)
    require(
        len(set(seeds)) == len(seeds), f"A seed occurs twice among the runs of {recipes.pop()}: give each run once."
    )
    first = records[0]
    return Outcomes(
        recipe=first.recipe_name,
        data=first.data_name,
        metric=first.metric,
        values=values,
        seeds=seeds,
        paper=tuple(first.recipe.get("paper_test", ())),
    )


def tested(record: Record, path: Path) -> float:
    """The test metric of a finished run."""
    if record.test is None:
        raise InputError(f"{path} holds no test metric yet: finish that run first.")
    return record.test


def trained_recipe(record: Record) -> Recipe:
    """The recipe of a record, with the fields that this version has.

    A record of an earlier version names no flow; its graphs were undirected, on which every flow is the same.
    """
    model = {"flow": ModelRecipe.flow, **record.recipe.get("model", {})}
    return from_json(json.dumps({**record.recipe, "model": model}), f"The record of {record.recipe_name}")


def epoch_seconds(records: Sequence[Record]) -> float | None:
    """Median seconds of a training epoch; first ones, which compile and capture, are left out where there are others.

    None before the first epoch.
    """
    times = sorted(entry.seconds for record in records for entry in record.epochs[1:] or record.epochs)
    return times[len(times) // 2] if times else None


def origin_of(records: Sequence[Record]) -> Origin:
    """What trained these runs."""
    return Origin(
        commit=", ".join(sorted({record.commit or "unknown" for record in records})),
        device=", ".join(sorted({record.device for record in records})),
        versions=records[0].versions,
        seconds=sum(record.wall_s for record in records),
    )
