"""Draw validation MAE and training loss of the four ZINC runs whose records lie in results/zinc/seeds.

python docs/figures/draw_zinc_seeds.py
"""

import json
import statistics
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot

HERE = Path(__file__).parent
RUNS = HERE.parents[1] / "results" / "zinc" / "seeds"
COLOURS = ("#1f5fa8", "#d9731a", "#2e8b57", "#8c5aa8")
PAPER, PAPER_DEVIATION = 0.059, 0.003
WINDOW = 25  # epochs of a running median


def running_median(values: list[float]) -> list[float]:
    """Single epochs jump by a tenth; their median shows where the curve goes."""
    return [statistics.median(values[max(0, place - WINDOW) : place + WINDOW + 1]) for place in range(len(values))]


def main() -> None:
    records = [json.loads((RUNS / f"seed{seed}" / "record.json").read_text()) for seed in range(4)]
    tests = [record["best"]["test"] for record in records]
    figure, axes = pyplot.subplots(figsize=(8.4, 4.0), layout="constrained")
    for seed, (record, colour) in enumerate(zip(records, COLOURS, strict=True)):
        numbers = [entry["epoch"] + 1 for entry in record["epochs"]]
        validation = running_median([entry["val"] for entry in record["epochs"]])
        axes.plot(numbers, validation, color=colour, linewidth=1.4, label=f"validation, seed {seed}, running median")
        axes.plot(numbers, [entry["train_loss"] for entry in record["epochs"]], color=colour, linewidth=0.8, alpha=0.5)
        best = record["best"]
        axes.scatter(best["epoch"] + 1, best["test"], color=colour, marker="D", s=34, zorder=3, edgecolor="white")
    axes.axhspan(PAPER - PAPER_DEVIATION, PAPER + PAPER_DEVIATION, color="#9aa1ab", alpha=0.35, linewidth=0)
    axes.text(40, PAPER, "paper, test: 0.059 ± 0.003", va="center", fontsize=9)
    axes.text(1985, 0.0265, "training loss", fontsize=9, ha="right")
    axes.scatter([], [], color="#4a4f57", marker="D", s=34, label="test, network of the best epoch")
    axes.set_yscale("log")
    axes.set_ylim(0.018, 0.6)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.set_yticks([0.02, 0.05, 0.1, 0.2, 0.5])
    axes.yaxis.set_minor_formatter("")
    axes.grid(alpha=0.3)
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean absolute error")
    mean, deviation = statistics.mean(tests), statistics.stdev(tests)
    axes.set_title(f"ZINC-12k, 2,000 epochs, four seeds: test MAE {mean:.4f} ± {deviation:.4f}", fontsize=11)
    axes.legend(fontsize=9)
    figure.savefig(HERE / "zinc-seeds.png", dpi=150)


if __name__ == "__main__":
    main()
