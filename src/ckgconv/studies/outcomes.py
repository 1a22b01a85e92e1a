"""Test metrics of finished runs, read from their records."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record, load_record


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
