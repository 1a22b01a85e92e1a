"""Figures of a report, as SVG.

Text of a table may contain anything, so that none of it is read as a formula.
"""

import io
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from ckgconv.engine.record import Record
from ckgconv.explanation.drawing import printable
from ckgconv.report.scores import word

Values = NDArray[np.float64]
COLOURS = {"train": "#8da0b3", "val": "#e39b3f", "test": "#2a6fbb"}
STYLE: Any = {
    "text.parse_math": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "ckgconv",
    "font.size": 9,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
}
# Points of a scatter plot: more are drawn as pixels, since an SVG would hold each of them.
MOST_POINTS = 1500
BINS = 24
LETTERS = 60
LETTERS_HIGH = 36  # along the height of a figure


def svg_of(draw: Any, width: float = 4.4, height: float = 3.1, columns: int = 1) -> str:
    """What `draw` paints on axes, or on a list of `columns` of them, as SVG."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(width * columns, height), layout="constrained")
        axes = figure.subplots(1, columns, squeeze=False)[0]
        draw(axes[0] if columns == 1 else list(axes))
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    found = text.getvalue()
    return found[found.index("<svg") :]


def histograms(parts: dict[str, Values], label: str) -> str:
    """Shares of the values of each split."""

    def draw(axes: Axes) -> None:
        everything = np.concatenate(list(parts.values()))
        edges = np.histogram_bin_edges(everything, bins=BINS).tolist()
        for name, values in parts.items():
            weights = np.full(len(values), 100 / max(len(values), 1))
            axes.hist(values, edges, weights=weights, histtype="step", color=COLOURS[name], linewidth=1.6, label=name)
        axes.set_xlabel(printable(label, LETTERS))
        axes.set_ylabel("% of the split")
        axes.legend()

    return svg_of(draw)


def curves(record: Record) -> str:
    """Training loss and validation metric by epoch."""

    def draw(both: list[Axes]) -> None:
        numbers = [entry.epoch + 1 for entry in record.epochs]
        series = {
            "training loss": [entry.train_loss for entry in record.epochs],
            f"validation {word(record.metric)}": [entry.val for entry in record.epochs],
        }
        for axes, (name, values), colour in zip(both, series.items(), (COLOURS["train"], COLOURS["val"]), strict=True):
            axes.plot(numbers, values, color=colour, marker="o" if len(numbers) < 3 else None)
            axes.set_xlabel("epoch")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
            axes.set_ylabel(printable(name, LETTERS_HIGH))
            if record.best is not None:
                axes.axvline(record.best.epoch + 1, color="0.4", linestyle="--", linewidth=0.9, label="best epoch")
                axes.legend()

    return svg_of(draw, columns=2)


def parity(parts: dict[str, tuple[Values, Values]], name: str) -> str:
    """Predictions over targets of each split, the line of equality, and residuals over predictions."""

    def draw(both: list[Axes]) -> None:
        everything = np.concatenate([np.concatenate(each) for each in parts.values()])
        low, high = float(everything.min()), float(everything.max())
        margin = 0.04 * (high - low or 1.0)
        for split, (target, predicted) in parts.items():
            options: dict[str, Any] = {"s": 12, "alpha": 0.6, "color": COLOURS[split], "label": split, "linewidths": 0}
            pixels = len(target) > MOST_POINTS
            both[0].scatter(target, predicted, rasterized=pixels, **options)
            both[1].scatter(predicted, predicted - target, rasterized=pixels, **options)
        both[0].plot([low - margin, high + margin], [low - margin, high + margin], color="0.3", linewidth=0.9)
        both[0].set(xlim=(low - margin, high + margin), ylim=(low - margin, high + margin))
        both[1].axhline(0, color="0.3", linewidth=0.9)
        both[0].set(xlabel=printable(f"true {name}", LETTERS), ylabel=printable(f"predicted {name}", LETTERS_HIGH))
        both[1].set(xlabel=printable(f"predicted {name}", LETTERS), ylabel="predicted − true")
        both[0].legend(loc="upper left")

    return svg_of(draw, columns=2)


def roc_and_precision(label: Values, probability: Values) -> str:
    """Receiver operating characteristic, and precision over recall."""
    from sklearn.metrics import precision_recall_curve, roc_curve

    def draw(both: list[Axes]) -> None:
        false, true, _ = roc_curve(label, probability)
        precision, recall, _ = precision_recall_curve(label, probability)
        both[0].plot(false, true, color=COLOURS["test"])
        both[0].plot([0, 1], [0, 1], color="0.4", linestyle="--", linewidth=0.9, label="chance")
        # Steps: between two thresholds no line of precision can be reached.
        both[1].plot(recall, precision, color=COLOURS["test"], drawstyle="steps-post")
        share = float(label.mean())
        both[1].axhline(share, color="0.4", linestyle="--", linewidth=0.9, label="chance")
        both[0].set(xlabel="false positive rate", ylabel="true positive rate")
        both[1].set(xlabel="recall", ylabel="precision", ylim=(0, 1.05))
        for axes in both:
            axes.legend()

    return svg_of(draw, columns=2)


def confusion(counts: NDArray[np.int64], names: Sequence[str]) -> str:
    """Counts of true and predicted classes."""

    def draw(axes: Axes) -> None:
        axes.imshow(counts, cmap="Blues")
        shown = [printable(name, 14) for name in names]
        axes.set_xticks(range(len(shown)), shown, rotation=45, ha="right")
        axes.set_yticks(range(len(shown)), shown)
        axes.grid(False)
        for (row, column), count in np.ndenumerate(counts):
            dark = count > counts.max() / 2
            axes.text(column, row, str(count), ha="center", va="center", color="white" if dark else "black")
        axes.set(xlabel="predicted", ylabel="true")

    size = max(3.1, 1.2 + 0.45 * len(names))
    return svg_of(draw, size + 0.6, size)


def coverage_curve(levels: Sequence[float], shares: Sequence[float]) -> str:
    """How often intervals contain the truth, over how often they should."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color="0.4", linestyle="--", linewidth=0.9, label="exact")
        axes.plot(levels, shares, color=COLOURS["test"], marker="o", markersize=4, label="test rows")
        axes.set(xlabel="level of the interval", ylabel="intervals with the truth", xlim=(0, 1), ylim=(0, 1.02))
        axes.legend()

    return svg_of(draw)


def reliability(parts: dict[str, tuple[Sequence[float], Sequence[float]]]) -> str:
    """Observed frequency over predicted probability, in bins."""

    def draw(axes: Axes) -> None:
        axes.plot([0, 1], [0, 1], color="0.4", linestyle="--", linewidth=0.9, label="exact")
        for (name, (predicted, observed)), colour in zip(parts.items(), ("#2a6fbb", "#e39b3f"), strict=False):
            axes.plot(predicted, observed, marker="o", markersize=4, color=colour, label=name)
        axes.set(xlabel="predicted probability", ylabel="observed frequency", xlim=(0, 1), ylim=(0, 1))
        axes.legend()

    return svg_of(draw)
