"""The page of `duel.py`: README.md, table.json and figure.png from the results of its runs.

    t-test    paired over the splits that both methods have; of several seeds on one split, Welch's of two samples

With three splits a difference has to be about four times its standard error to have p < 0.05.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from duel import SETS
from duel_methods import METHODS
from scipy import stats

matplotlib.use("Agg")
from matplotlib import pyplot as plt

LABELS = {
    "ckgconv": "ckgconv, pretrained",
    "scratch": "ckgconv, from scratch",
    "chemprop": "chemprop 2.3.1",
    "forest": "forest, fingerprints",
    "linear": "linear, descriptors",
}


def write_page(folder: Path) -> None:
    """Everything that the results in folder/runs say so far."""
    results = [json.loads(path.read_text()) for path in sorted((folder / "runs").glob("*.json"))]
    table = [summary(name, method, results) for name in SETS for method in METHODS]
    table = [row for row in table if row is not None]
    tests = [
        test
        for name in SETS
        for other in ("chemprop", "scratch", "forest", "linear")
        if (test := compared(name, other, results))
    ]
    (folder / "table.json").write_text(json.dumps({"table": table, "tests": tests}, indent=1) + "\n")
    draw(table, tests, folder / "figure.png")
    (folder / "README.md").write_text(page(table, tests, results))


def of(results: list[dict[str, Any]], name: str, method: str) -> dict[tuple[str, int], dict[str, Any]]:
    """Results of a method on a set, by split and seed."""
    return {(each["split"], each["seed"]): each for each in results if (each["set"], each["method"]) == (name, method)}


def summary(name: str, method: str, results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Mean and s.d. over the runs of a method on a set."""
    found = list(of(results, name, method).values())
    if not found:
        return None
    row: dict[str, Any] = {"set": name, "method": method, "runs": len(found)}
    for metric in ("rmse", "mae", "auroc", "cpu_s"):
        values = [each[metric] for each in found if metric in each]
        if values:
            row[metric] = round(float(np.mean(values)), 4)
            row[f"{metric}_sd"] = round(float(np.std(values, ddof=1)), 4) if len(values) > 1 else None
    return row


def compared(name: str, other: str, results: list[dict[str, Any]]) -> dict[str, Any] | None:
    """ckgconv against another method, on the splits that both have; positive where ckgconv is better."""
    ours, theirs, metric = of(results, name, "ckgconv"), of(results, name, other), SETS[name].metric
    paired = len(SETS[name].splits) > 1
    if paired:
        shared = ours.keys() & theirs.keys()
        ours, theirs = ({key: each[key] for key in sorted(shared)} for each in (ours, theirs))
    if not ours or not theirs:
        return None
    sign = 1 if metric == "auroc" else -1
    first, second = ([sign * each[metric] for each in found.values()] for found in (ours, theirs))
    p = None
    if min(len(first), len(second)) > 1:
        test = stats.ttest_rel(first, second) if paired else stats.ttest_ind(first, second, equal_var=False)
        p = round(float(test.pvalue), 4)
    better = round(float(np.mean(first) - np.mean(second)), 4)
    cpu = [round(float(np.mean([each["cpu_s"] for each in found.values()])), 1) for found in (ours, theirs)]
    outcome = {"metric": metric, "better_by": better, "p": p, "runs": [len(first), len(second)], "cpu": cpu}
    return {"set": name, "against": other, **outcome}


def draw(table: list[dict[str, Any]], tests: list[dict[str, Any]], path: Path) -> None:
    """One panel for each set: the metric of each method with its s.d.; points, since the axes do not begin at zero."""
    duels = [test for test in tests if test["against"] == "chemprop"]
    ahead, told = sum(test["better_by"] > 0 for test in duels), sum(verdict(test) == "better" for test in duels)
    names = [name for name in SETS if any(row["set"] == name for row in table)]
    size = (1.5 + 2.8 * len(names), 2.9)
    figure, axes = plt.subplots(1, len(names), figsize=size, layout="constrained", squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        each, rows = SETS[name], [row for row in table if row["set"] == name]
        for place, row in enumerate(rows):
            colour = "tab:blue" if row["method"] == "ckgconv" else "tab:gray"
            spread = row[f"{each.metric}_sd"]
            axis.errorbar(row[each.metric], place, xerr=spread, fmt="o", markersize=5, capsize=3, color=colour)
        axis.set_yticks(range(len(rows)), [LABELS[row["method"]] for row in rows], fontsize=8)
        axis.set_ylim(len(METHODS) - 0.4, -0.6)
        axis.margins(x=0.15)
        axis.grid(axis="x", alpha=0.3)
        better = "lower is better" if each.metric == "rmse" else "higher is better"
        axis.set_title(f"{name}\n{'RMSE' if each.metric == 'rmse' else 'ROC-AUC'}, {better}", fontsize=10)
    title = f"Test: ckgconv has the better mean than chemprop on {ahead} of {len(duels)} sets, with p < 0.05 on {told}"
    figure.suptitle(title, fontsize=11)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def verdict(test: dict[str, Any]) -> str:
    """Better or worse where the difference is told apart from chance."""
    if test["p"] is None or test["p"] >= 0.05:
        return "not told apart"
    return "better" if test["better_by"] > 0 else "worse"


def cell(row: dict[str, Any], metric: str) -> str:
    if metric not in row:
        return ""
    spread = row[f"{metric}_sd"]
    return f"{row[metric]:.3f}" + ("" if spread is None else f" ± {spread:.3f}")


HEADING = """# Small sets of molecules, against chemprop and simple models

Written by `python benchmarks/duel.py --page` from the results in `runs`, each of which is one process with one thread;
its docstring says how to repeat them. ESOL, lipophilicity and Tox21 have three random splits, BBBP and HIV one scaffold
split, on which methods run with several seeds; every method has the same rows to train, validate and test. All run
with their defaults. Settings of ckgconv were chosen by validation splits. Eight rows of Tox21, whose SMILES RDKit
cannot read, are left out. The other methods had one run on HIV, since its 41,127 molecules take them up to an hour.

| set | method | runs | RMSE | MAE | ROC-AUC | CPU s |
|---|---|---|---|---|---|---|"""


def page(table: list[dict[str, Any]], tests: list[dict[str, Any]], results: list[dict[str, Any]]) -> str:
    """README.md."""
    lines = [HEADING]
    for row in table:
        values = " | ".join(cell(row, metric) for metric in ("rmse", "mae", "auroc"))
        lines.append(f"| {row['set']} | {LABELS[row['method']]} | {row['runs']} | {values} | {row['cpu_s']:.0f} |")
    lines += ["", "![Test metric of every method on every set](figure.png)", "", "## ckgconv against the others", ""]
    lines += [
        "| set | against | metric | ahead by | p | verdict | runs, ours and theirs | CPU s, ours and theirs |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for test in tests:
        p = "one run" if test["p"] is None else f"{test['p']:.3f}"
        cpu = " and ".join(f"{value:.0f}" for value in test["cpu"])
        lines.append(
            f"| {test['set']} | {LABELS[test['against']]} | {test['metric']} | {test['better_by']:+.3f} | {p} | "
            f"{verdict(test)} | {' and '.join(map(str, test['runs']))} | {cpu} |"
        )
    commits = ", ".join(sorted({each["commit"] for each in results if each["method"] in ("ckgconv", "scratch")}))
    lines += [
        "",
        f"Commits of the runs of ckgconv, after rebasing: {commits}. Device: one thread of a CPU each, on a machine "
        f"with other work.",
    ]
    return "\n".join(lines) + "\n"
