"""The learning curve of a run: training loss and validation metric by epoch."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ckgconv.engine.record import Record
from ckgconv.files import write_whole
from ckgconv.tasks.metrics import METRICS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BARS = "▁▂▃▄▅▆▇█"
# Most characters of a curve in the terminal.
MAX_BARS = 60
# Over a wider range, a logarithmic axis has labels at powers of ten alone.
MOST_LABELLED = 20
# With fewer epochs, points are marked.
FEW_EPOCHS = 3


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
    figure = curve(record)
    write_whole(path, lambda part: figure.savefig(part, dpi=130, format="png"))


def curve(record: Record) -> "Figure":
    """Training loss and validation metric by epoch."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    epochs, best, metric = record.epochs, record.best, record.metric
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    numbers = [entry.epoch + 1 for entry in epochs]
    # A line through a single point would be invisible.
    marker = "o" if len(numbers) < FEW_EPOCHS else None
    axes.plot(numbers, [entry.train_loss for entry in epochs], label="training loss", color="tab:blue", marker=marker)
    axes.plot(numbers, [entry.val for entry in epochs], label=f"validation {metric}", color="tab:orange", marker=marker)
    title = f"{record.recipe_name}, seed {record.seed}"
    if best is not None:
        axes.axvline(best.epoch + 1, color="tab:gray", linewidth=0.8, linestyle="--", label="best epoch")
        test = "" if best.test is None else f", test {metric} {best.test:.4f}"
        title = f"{title}: best epoch {best.epoch + 1}{test}"
    axes.set_title(title, parse_math=False)  # so that a $ in a name does not begin a formula
    axes.set_xlabel("epoch")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_ylabel(f"loss, {metric}")
    positive = all(entry.train_loss > 0 and entry.val > 0 for entry in epochs)
    if not METRICS[metric].higher_is_better and positive:
        # Errors fall by orders of magnitude, and stay within the last one for most of the run.
        axes.set_yscale("log")
        low, high = axes.get_ylim()
        axes.yaxis.set_major_formatter("{x:g}")
        # Labels between powers of ten, where there is room.
        axes.yaxis.set_minor_formatter("{x:g}" if high < MOST_LABELLED * low else "")
    axes.grid(alpha=0.3, which="both")
    axes.legend()
    return figure
