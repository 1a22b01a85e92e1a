"""Whether a precision trains to the same score: curves and test scores of runs that differ in it, from their records.

    python benchmarks/precisions.py runs/A runs/B … --figure out.png

Runs are grouped by the precision their record names; the rest of their recipes must agree.
"""

import argparse
import json
import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError
from ckgconv.engine.record import Record, load_record
from ckgconv.studies.outcomes import tested
from ckgconv.studies.t_test import sample, t_test
from ckgconv.tasks.metrics import METRICS

COLOURS = {"32": "tab:blue", "tf32": "tab:orange", "bf16": "tab:green", "64": "tab:gray"}
NAMES = {"32": "fp32", "64": "fp64"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="folders of finished runs")
    parser.add_argument("--figure", type=Path)
    options = parser.parse_args()
    try:
        found = [load_record(folder) for folder in options.runs]
        for record, folder in zip(found, options.runs, strict=True):
            tested(record, folder)
    except InputError as error:
        parser.error(str(error))
    if any(record.recipe != found[0].recipe for record in found):
        parser.error("the runs have different recipes: give runs that differ in precision and seed only.")
    records = grouped(found)
    print(json.dumps(compared(records), indent=1))
    if options.figure:
        draw(records, options.figure)


def grouped(records: list[Record]) -> dict[str, list[Record]]:
    """Records by precision, the first of the command line first."""
    found = defaultdict(list)
    for record in records:
        found[record.precision].append(record)
    return dict(found)


def compared(records: dict[str, list[Record]]) -> dict[str, Any]:
    """Test scores of each precision, and a t-test against the first where both have several runs."""
    tests = {name: [record.test for record in group] for name, group in records.items()}
    first, *others = tests
    report: dict[str, Any] = {
        NAMES.get(name, name): {
            "seeds": [record.seed for record in records[name]],
            "commits": sorted({record.commit or "unknown" for record in records[name]}),
            "devices": sorted({record.device for record in records[name]}),
            "test": values,
            "mean": round(statistics.fmean(values), 5),
            "epoch_s": round(statistics.median(epoch.seconds for r in records[name] for epoch in r.epochs), 4),
        }
        for name, values in tests.items()
    }
    higher = METRICS[records[first][0].metric].higher_is_better
    for name in others:
        if min(len(tests[name]), len(tests[first])) > 1:
            outcome = t_test(sample(tests[name]), sample(tests[first]), higher)
            report[NAMES.get(name, name)]["two_sided_p"] = round(outcome.two_sided, 3)
    return report


def draw(records: dict[str, list[Record]], path: Path) -> None:
    """Validation score by epoch, one line per run."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import ScalarFormatter

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    for name, group in records.items():
        for place, record in enumerate(group):
            epochs = [epoch.epoch + 1 for epoch in record.epochs]
            values = [epoch.val for epoch in record.epochs]
            label = f"{NAMES.get(name, name)}, seeds {', '.join(str(each.seed) for each in group)}"
            axes.plot(epochs, values, color=COLOURS[name], linewidth=0.9, alpha=0.8, label=None if place else label)
    metric = next(iter(records.values()))[0].metric
    metric = metric.upper() if metric == "mae" else metric.replace("_", " ")
    axes.set_yscale("log")
    for ticks in (axes.yaxis.set_major_formatter, axes.yaxis.set_minor_formatter):
        ticks(ScalarFormatter())
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"validation {metric}")
    axes.grid(alpha=0.3, which="both", linewidth=0.4)
    scores = ", ".join(
        f"{NAMES.get(name, name)} {statistics.fmean(record.test for record in group):.4f}"
        for name, group in records.items()
    )
    axes.set_title(f"Validation {metric} by precision; test: {scores}")
    axes.legend()
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


if __name__ == "__main__":
    main()
