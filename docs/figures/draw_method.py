"""Draw the method: a pair of nodes, its pseudo-coordinates, the kernel ψ, the sum over the support.

    python docs/figures/draw_method.py

The graph is a ring of five with a tail, all weights 1; the bars are its random-walk probabilities. ψ and x are
drawn from seed 0: they only show that a kernel has both signs.
"""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

HERE = Path(__file__).parent
RECEIVER, SENDER, NODE, LINE = "#1f5fa8", "#d9731a", "#c9ced6", "#4a4f57"
POWERS = 9
CHANNELS = 8
EDGES = ((0, 1), (1, 2), (2, 3), (3, 4), (4, 0), (0, 5), (5, 6), (6, 7))
RECEIVES, SENDS = 5, 2


def layout() -> np.ndarray:
    """Positions of the nodes: a ring of five and a tail of three."""
    angles = np.deg2rad(72 * np.arange(5))
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    tail = ring[0] + np.array([[1.0, 0.0], [1.5, 0.87], [2.5, 0.87]])
    return np.concatenate([ring, tail])


def walk_probabilities() -> np.ndarray:
    """[POWERS, n, n]: I, M, M², …"""
    adjacency = np.zeros((8, 8))
    for one, other in EDGES:
        adjacency[one, other] = adjacency[other, one] = 1.0
    step = adjacency / adjacency.sum(1, keepdims=True)
    return np.stack([np.linalg.matrix_power(step, power) for power in range(POWERS)])


def draw_graph(axes: Axes) -> None:
    places = layout()
    for one, other in EDGES:
        axes.plot(*places[[one, other]].T, color=LINE, linewidth=1.6, zorder=1)
    for node, place in enumerate(places):
        colour = {RECEIVES: RECEIVER, SENDS: SENDER}.get(node, NODE)
        axes.scatter(*place, s=330, color=colour, edgecolor=LINE, linewidth=1.2, zorder=2)
    for node, name in ((RECEIVES, "i"), (SENDS, "j")):
        axes.text(*places[node], name, color="white", ha="center", va="center", fontsize=12, style="italic", zorder=3)
    arrow = FancyArrowPatch(
        places[RECEIVES], places[SENDS], connectionstyle="arc3,rad=0.85", arrowstyle="-", shrinkA=12, shrinkB=12,
        color=SENDER, linewidth=1.6, linestyle="--",
    )  # fmt: skip
    axes.add_patch(arrow)
    axes.text(1.3, 2.12, "pair (i, j): i receives, j sends", color=SENDER, ha="center", fontsize=9)
    axes.text(1.3, -1.55, "supp(i): here all nodes, or those within k hops", ha="center", fontsize=9, color=LINE)
    axes.set(xlim=(-1.3, 3.9), ylim=(-1.8, 2.4), aspect="equal", anchor="C")
    axes.axis("off")


def draw_coordinates(axes: Axes) -> None:
    values = walk_probabilities()[:, RECEIVES, SENDS]
    axes.bar(range(POWERS), values, color=SENDER, width=0.7)
    axes.set_xticks(range(POWERS), ["I", "M", *(f"$M^{power}$" for power in range(2, POWERS))], fontsize=8)
    axes.tick_params(axis="y", labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_ylabel("probability of a walk from i to j", fontsize=8)


def draw_kernel(axes: Axes) -> None:
    stages = ("stem: norm, linear", "residual MLP block", "residual MLP block", "norm, linear")
    for place, stage in enumerate(stages):
        low = 3 - place
        axes.add_patch(
            FancyBboxPatch(
                (0.06, low + 0.16), 0.88, 0.6, boxstyle="round,pad=0.02", facecolor="#eef1f5", edgecolor=LINE
            )
        )
        axes.text(0.5, low + 0.46, stage, ha="center", va="center", fontsize=9)
        if place:
            axes.annotate("", (0.5, low + 0.80), (0.5, low + 1.13), arrowprops={"arrowstyle": "-|>", "color": LINE})
    axes.set(xlim=(0, 1), ylim=(-0.1, 4.0))
    axes.axis("off")


def draw_sum(axes: Axes, random: np.random.Generator) -> None:
    """Rows of coloured cells: ψ and x of three senders, and their sum."""
    psi, x = random.uniform(-1, 1, (3, CHANNELS)), random.uniform(-1, 1, (3, CHANNELS))
    y = (psi * x).mean(0)
    cell = 0.30
    names = ("j", "j′", "j″")
    for row, name in enumerate(names):
        top = 3.2 - 0.75 * row
        strip(axes, 0.0, top, cell, psi[row])
        axes.text(CHANNELS * cell + 0.22, top + cell / 2, "⊙", ha="center", va="center", fontsize=12)
        strip(axes, CHANNELS * cell + 0.44, top, cell, x[row])
        axes.text(-0.12, top + cell / 2, name, ha="right", va="center", fontsize=10, style="italic", color=SENDER)
    axes.text(CHANNELS * cell / 2, 3.66, "$\\psi(P_{ij})$", ha="center", fontsize=11)
    axes.text(1.5 * CHANNELS * cell + 0.44, 3.66, "$x_j$", ha="center", fontsize=11)
    middle = CHANNELS * cell + 0.22
    axes.annotate("", (middle, 0.86), (middle, 1.52), arrowprops={"arrowstyle": "-|>", "color": LINE})
    axes.text(middle + 0.18, 1.2, "mean over supp(i),\nthen W and b", va="center", fontsize=9)
    left = middle - CHANNELS * cell / 2
    strip(axes, left, 0.42, cell, y / np.abs(y).max())
    axes.text(left - 0.12, 0.42 + cell / 2, "$y_i$", ha="right", va="center", fontsize=12, color=RECEIVER)
    axes.text(middle, 0.02, "red: negative    blue: positive", ha="center", fontsize=8, color=LINE)
    axes.set(xlim=(-0.5, 2 * CHANNELS * cell + 0.6), ylim=(-0.1, 4.0))
    axes.axis("off")


def strip(axes: Axes, left: float, low: float, cell: float, values: np.ndarray) -> None:
    """Channels as cells coloured by value."""
    colours = pyplot.get_cmap("RdBu")(0.5 + 0.5 * values)
    for place, colour in enumerate(colours):
        axes.add_patch(
            pyplot.Rectangle((left + place * cell, low), cell, cell, facecolor=colour, edgecolor=LINE, lw=0.6)
        )


def main() -> None:
    figure, panels = pyplot.subplots(1, 4, figsize=(14.4, 3.9), width_ratios=(1.25, 1.15, 0.85, 1.45))
    draw_graph(panels[0])
    draw_coordinates(panels[1])
    draw_kernel(panels[2])
    draw_sum(panels[3], np.random.default_rng(0))
    titles = (
        "1  a pair of nodes",
        "2  its pseudo-coordinates $P_{ij}$",
        "3  the kernel ψ, an MLP",
        "4  the sum over the support",
    )
    figure.suptitle(
        "$y_i = W\\,(\\,1/|supp(i)|\\;\\sum_{j\\in supp(i)}\\; x_j \\odot \\psi(P_{ij})\\,) + b$", fontsize=14, y=0.99
    )
    figure.subplots_adjust(left=0.01, right=0.995, bottom=0.1, top=0.76, wspace=0.2)
    for panel, title in zip(panels, titles, strict=True):
        box = panel.get_position()
        figure.text((box.x0 + box.x1) / 2, 0.815, title, ha="center", fontsize=11)
    for suffix in ("png", "svg"):
        figure.savefig(HERE / f"method.{suffix}", dpi=150, metadata={"Date": None} if suffix == "svg" else None)


if __name__ == "__main__":
    pyplot.rcParams["svg.hashsalt"] = "method"
    main()
