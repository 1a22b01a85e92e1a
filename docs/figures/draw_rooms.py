"""Draw the packages of the source tree in the order in which they may import each other.

python docs/figures/draw_rooms.py

The order is read from the list in docs/architecture.md.
"""

import re
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import FancyBboxPatch

HERE = Path(__file__).parent
LINE = "#4a4f57"
# Columns of the picture: title, colour, packages. Together they are the list of the page.
COLUMNS = (
    ("vocabulary", "#eef1f5", ("checks", "registry", "files", "graphs", "recipe")),
    ("equations", "#dce9f7", ("ops", "pe", "pairs", "nn")),
    ("what to run", "#e6f2e4", ("recipes", "data", "tasks")),
    ("running it", "#fbe9d8", ("backends", "engine")),
    ("deciding by it", "#fdf3cf", ("uncertainty", "explanation", "report", "estimators", "exporting", "searching")),
    ("studying and serving", "#f1e6f4", ("theory", "studies", "campaigns", "serve", "cli")),
)
SAYS = {
    "checks": "refusals as sentences",
    "registry": "entries by name",
    "files": "whole files, digests",
    "graphs": "graphs, pairs, batch",
    "recipe": "what a run is",
    "ops": "small tensor operations",
    "pe": "pseudo-coordinates",
    "pairs": "support of a batch",
    "nn": "plain torch models",
    "recipes": "recipes by name",
    "data": "where graphs come from",
    "tasks": "losses and metrics",
    "backends": "passes of a device",
    "engine": "step, epoch, run, record",
    "uncertainty": "intervals, applicability",
    "explanation": "atoms, bonds, drawings",
    "report": "a run as one page",
    "estimators": "scikit-learn's interface",
    "exporting": "torch.export and ONNX",
    "searching": "settings by trials",
    "theory": "equivalences as layers",
    "studies": "the paper's studies",
    "campaigns": "many runs by a queue",
    "serve": "a page to try a network",
    "cli": "the commands",
}
WIDTH, HEIGHT, GAP = 2.5, 0.72, 0.16


def order() -> list[str]:
    """The packages of the numbered list of the page."""
    page = (HERE.parent / "architecture.md").read_text(encoding="utf-8")
    return re.findall(r"^\d+\. `(\w+)`", page, flags=re.MULTILINE)


def box(axes: Axes, left: float, top: float, name: str, number: int, colour: str) -> None:
    axes.add_patch(
        FancyBboxPatch((left, top - HEIGHT), WIDTH, HEIGHT, boxstyle="round,pad=0.02", facecolor=colour, edgecolor=LINE)
    )
    axes.text(left + 0.12, top - 0.26, f"{number}  {name}", va="center", fontsize=11, family="monospace")
    axes.text(left + 0.12, top - 0.53, SAYS[name], va="center", fontsize=9, color=LINE)


def main() -> None:
    names = [name for _, _, column in COLUMNS for name in column]
    assert names == order(), "the picture and docs/architecture.md name different packages"
    figure, axes = pyplot.subplots(figsize=(15.6, 5.0))
    for place, (title, colour, column) in enumerate(COLUMNS):
        left = place * (WIDTH + 0.55)
        axes.text(left + WIDTH / 2, 0.22, title, ha="center", fontsize=11, color=LINE)
        for row, name in enumerate(column):
            box(axes, left, -row * (HEIGHT + GAP), name, names.index(name) + 1, colour)
        if place:
            axes.annotate(
                "", (left - 0.08, 0.28), (left - 0.47, 0.28), arrowprops={"arrowstyle": "-|>", "color": LINE, "lw": 1.6}
            )
    bottom = -max(len(column) for _, _, column in COLUMNS) * (HEIGHT + GAP) - 0.18
    whole = len(COLUMNS) * WIDTH + (len(COLUMNS) - 1) * 0.55
    axes.annotate("", (whole, bottom), (0, bottom), arrowprops={"arrowstyle": "-|>", "color": LINE, "lw": 1.2})
    axes.text(
        whole / 2, bottom - 0.24, "a package imports only packages with smaller numbers", ha="center", fontsize=10
    )
    axes.set(xlim=(-0.1, whole + 0.1), ylim=(bottom - 0.45, 0.6), aspect="equal")
    axes.axis("off")
    figure.subplots_adjust(left=0.01, right=0.99, bottom=0.01, top=0.99)
    figure.savefig(HERE / "rooms.png", dpi=150)


if __name__ == "__main__":
    main()
