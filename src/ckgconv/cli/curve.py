"""The learning curve of a run: training loss and validation metric by epoch."""

import math
from pathlib import Path

from ckgconv.engine.record import Record
from ckgconv.files import write_whole
from ckgconv.tasks.metrics import METRICS

BARS = "▁▂▃▄▅▆▇█"
# Characters of a curve in the terminal, at most.
MAX_BARS = 60


def sparkline(values: list[float]) -> str:
    """Numbers as a line of bars, scaled from the lowest to the highest; long series are thinned."""
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return "no finite value"
    thinned = finite[:: max(-(-len(finite) // MAX_BARS), 1)]
    low, high = min(thinned), max(thinned)
    height = (high - low) or 1.0
    return "".join(BARS[min(int((value - low) / height * len(BARS)), len(BARS) - 1)] for value in thinned)


def draw_curve(record: Record, path: Path) -> None:
    """Write a PNG whose title gives the best epoch and its test metric."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    epochs, best, metric = record.epochs, record.best, record.metric
    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    numbers = [entry.epoch + 1 for entry in epochs]
    axes.plot(numbers, [entry.train_loss for entry in epochs], label="training loss", color="tab:blue")
    axes.plot(numbers, [entry.val for entry in epochs], label=f"validation {metric}", color="tab:orange")
    title = f"{record.recipe_name}, seed {record.seed}"
    if best is not None:
        axes.axvline(best.epoch + 1, color="tab:gray", linewidth=0.8, linestyle="--", label="best epoch")
        test = "" if best.test is None else f", test {metric} {best.test:.4f}"
        title = f"{title}: best epoch {best.epoch + 1}{test}"
    axes.set_title(title, parse_math=False)  # a name is no formula
    axes.set_xlabel("epoch")
    axes.set_ylabel(f"loss, {metric}")
    positive = all(entry.train_loss > 0 and entry.val > 0 for entry in epochs)
    if not METRICS[metric].higher_is_better and positive:
        # Errors fall by orders of magnitude, and stay within the last one for most of the run.
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    write_whole(path, lambda part: figure.savefig(part, dpi=130, format="png"))
    pyplot.close(figure)
