"""What the kept validation curves say about which epoch to keep, and about which runs to go on with.

    python benchmarks/curves.py results/zinc/seeds results/levers-zinc [--width 50] [--first zinc-79e171fb-bf16]

Nothing but the validation metrics of records is read, all of them errors. One JSON line for each run:

    best, epoch        the least of all validations, and its epoch, counted from 1
    around             the mean of `width` validations around that epoch: what a network of that time has without luck
    noise              s.d. of these validations
    smoothed, at       the least mean of `width` validations in a row, and the last of their epochs
    late, late noise   mean and s.d. of the last `width` validations
    last, averaged     of the weights after the last epoch, and of their mean over the last quarter, where recorded

Of each run that was stopped, `now`, the mean of its last `width` validations, and `forecast`, what `late` will be if
its curve falls as those of the ended runs of the same length did; ± the s.d. of these. Of each row that has ended, and
at least two seeds in common with the first row: differences to it seed by seed, their mean, and ± its standard error,
whose variance is pooled over all rows. Runs of one seed share the order of their graphs, and the initial weights where
shapes are equal, so that differences of a seed have less noise than those between seeds.
"""

import argparse
import json
import math
import re
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from ckgconv.checks import require
from ckgconv.engine.record import Record, read_record

CRITERIA = ("best", "smoothed", "late", "last", "averaged")


@dataclass(frozen=True)
class Curve:
    """The validations of a run."""

    row: str  # what it has in common with the runs of other seeds
    record: Record

    @property
    def vals(self) -> list[float]:
        return [epoch.val for epoch in self.record.epochs]

    @property
    def length(self) -> int:
        """Epochs in all."""
        return int(self.record.recipe["training"]["epochs"])

    def describe(self, width: int) -> dict[str, float | None]:
        """The first lines of the table above."""
        vals, record = self.vals, self.record
        width = min(width, len(vals))
        epoch = vals.index(min(vals))
        start = min(max(epoch - width // 2, 0), len(vals) - width)
        near, late = vals[start : start + width], vals[-width:]
        means = [fmean(vals[place : place + width]) for place in range(len(vals) - width + 1)]
        return {
            "best": vals[epoch],
            "epoch": epoch + 1,
            "around": fmean(near),
            "noise": spread(near),
            "smoothed": min(means),
            "at": means.index(min(means)) + width,
            "late": fmean(late),
            "late noise": spread(late),
            "last": None if record.last is None else record.last.val,
            "averaged": None if record.averaged is None else record.averaged.val,
        }

    def fall(self, epoch: int, width: int) -> float:
        """`late` over the mean of the last `width` validations up to an epoch."""
        return fmean(self.vals[-width:]) / fmean(self.vals[max(0, epoch - width) : epoch])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="runs, campaigns, or folders of runs")
    parser.add_argument("--width", type=int, default=50, help="validations of a mean")
    parser.add_argument("--first", help="the row that others are compared with; by default the first one")
    options = parser.parse_args()
    curves = [curve for folder in options.folders for curve in curves_in(folder)]
    require(bool(curves), f"No run is in {', '.join(map(str, options.folders))}: give folders of runs.")
    for curve in curves:
        show({"run": curve.row, "seed": curve.record.seed, "epochs": len(curve.vals), **curve.describe(options.width)})
    for found in (*forecasts(curves, options.width), *differences(curves, options.width, options.first)):
        show(found)


def curves_in(folder: Path) -> list[Curve]:
    """Of a run, and of all runs in the folders of a folder."""
    found = []
    for path in sorted(file.parent for file in folder.glob("**/record.json")):
        record = read_record(path)
        if record is not None and record.epochs:
            found.append(Curve(re.sub(r"-?seed\d+$", "", path.name) or path.parent.name, record))
    return found


def forecasts(curves: list[Curve], width: int) -> list[dict[str, Any]]:
    """Of the runs that were stopped."""
    ended = [curve for curve in curves if curve.record.ended]
    found = []
    for curve in curves:
        epoch = len(curve.vals)
        falls = [other.fall(epoch, width) for other in ended if other.length == curve.length]
        if curve.record.ended or epoch < width or len(falls) < 2:
            continue
        now = fmean(curve.vals[-width:])
        found.append(
            {"run": curve.row, "seed": curve.record.seed, "epochs": epoch, "now": now}
            | {"forecast": now * fmean(falls), "±": now * stdev(falls), "from": len(falls)}
        )
    return found


def differences(curves: list[Curve], width: int, first: str | None) -> list[dict[str, Any]]:
    """Of each row to the first one, seed by seed."""
    rows: dict[str, dict[int, dict[str, float | None]]] = {}
    for curve in curves:
        if curve.record.ended:
            rows.setdefault(curve.row, {})[curve.record.seed] = curve.describe(width)
    if not rows:
        return []
    first = first or next(iter(rows))
    require(first in rows, f"{first} has no run that has ended: --first takes {', '.join(rows)}.")
    lines: list[dict[str, Any]] = []
    for criterion in CRITERIA:
        paired = {row: apart(seeds, rows[first], criterion) for row, seeds in rows.items() if row != first}
        paired = {row: values for row, values in paired.items() if len(values) >= 2}
        free = sum(len(values) - 1 for values in paired.values())
        if not free:
            continue
        squares = sum((value - fmean(values)) ** 2 for values in paired.values() for value in values)
        for row, values in paired.items():
            error = math.sqrt(squares / free / len(values))
            lines.append(
                {"row": row, "against": first, "criterion": criterion, "by seed": values}
                | {"mean": fmean(values), "±": error, "degrees of freedom": free}
            )
    return lines


def apart(
    seeds: dict[int, dict[str, float | None]], first: dict[int, dict[str, float | None]], criterion: str
) -> list[float]:
    """Differences of the seeds that both rows have."""
    pairs = [(seeds[seed][criterion], first[seed][criterion]) for seed in sorted(seeds.keys() & first.keys())]
    return [one - other for one, other in pairs if one is not None and other is not None]


def spread(values: list[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def show(found: dict[str, Any]) -> None:
    """A line, with five decimals."""
    print(json.dumps({name: rounded(value) for name, value in found.items()}, ensure_ascii=False))


def rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [rounded(each) for each in value]
    return round(value, 5) if isinstance(value, float) else value


if __name__ == "__main__":
    main()
