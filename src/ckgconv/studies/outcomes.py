"""Test metrics of finished runs, read from their records."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError, require
from ckgconv.files import read_text


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
    records = [read_record(path) for path in paths]
    recipes = {record["recipe"]["name"] for record in records}
    require(
        len(recipes) == 1, f"The runs are of different recipes ({', '.join(sorted(recipes))}): compare one at a time."
    )
    seeds = tuple(record["seed"] for record in records)
    require(
        len(set(seeds)) == len(seeds), f"A seed occurs twice among the runs of {recipes.pop()}: give each run once."
    )
    first = records[0]
    return Outcomes(
        recipe=first["recipe"]["name"],
        data=first["recipe"]["data"]["name"],
        metric=first["metric"],
        values=tuple(record["best"]["test"] for record in records),
        seeds=seeds,
        paper=tuple(first["recipe"].get("paper_test", ())),
    )


def read_record(path: Path) -> dict[str, Any]:
    """The record of a run that has been tested."""
    file = path / "record.json" if path.is_dir() else path
    text = read_text(file, "give the folder of a run, or its record.json.")
    try:
        record: dict[str, Any] = json.loads(text)
        tested = record["best"] is not None and record["best"]["test"] is not None
        known = {"seed", "metric"} <= set(record) and bool(
            record["recipe"]["data"]["name"] and record["recipe"]["name"]
        )
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{file} is not the record of a run: give the folder that `ckgconv train` wrote.") from error
    require(known and tested, f"{file} holds no test metric yet: finish that run first.")
    return record
