"""Learned kernels on molecules: ψ of several layers and channels next to the adjacency, and around one atom.

Coefficients are drawn in a diverging colour map centred at 0: a convolution whose kernel has both signs can sharpen,
one with positive coefficients alone can only blur.

Legend: n nodes of a molecule, L layers, D channels.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, require
from ckgconv.data import load
from ckgconv.engine.opened import open_network
from ckgconv.engine.run import Run
from ckgconv.graphs import pack
from ckgconv.nn import CKGCN
from ckgconv.nn.stem import Edges
from ckgconv.pe import spd
from ckgconv.studies.report import Options, Report, new_figure

# The folder of the full ZINC run.
TRAINED = Path("results/zinc")
MOLECULES = 64  # over which shares are taken
CHANNELS = (0, 1, 2)
COLOURS = "RdBu_r"
MOVES = 500  # of every atom of the drawing


@dataclass(frozen=True)
class Kernels:
    """ψ of every layer on one molecule."""

    adjacency: Tensor  # [n, n]
    psi: Tensor  # [L, n, n, D]
    place: NDArray[np.float64]  # [n, 2] where each atom is drawn


def kernels(options: Options) -> Report:
    """Kernels of a trained network on test molecules."""
    folder = options.runs[0] if options.runs else TRAINED
    require(len(options.runs) <= 1, "Several runs were given: give the one whose kernels are drawn.")
    run = open_network(folder, "cpu", "32")
    data = load(run.recipe.data, options.data_dir)
    require(run.recipe.model.support == "global", "The run's support is not the whole graph: give one with 'global'.")
    graphs = data.test[:MOLECULES]
    shares = negative_shares(run, [data.batch(graph.view(1)) for graph in graphs])
    shown = kernels_of(network_of(run), data.batch(graphs[:1]))
    share = float(torch.tensor(shares).mean())
    title = f"Learned kernels have both signs: {100 * share:.0f} % of the coefficients are negative"
    return Report(
        title=title,
        columns=("layer", "negative coefficients, %", "paper"),
        rows=[(str(layer + 1), round(100 * value, 1), "both signs") for layer, value in enumerate(shares)],
        figure=draw(shown, shares, title),
        notes=(
            f"ψ of every layer on {len(graphs)} test molecules of {run.recipe.data.name}, all pairs and channels, of "
            f"the network of `{folder}` in evaluation mode. The paper shows such kernels in pictures, without numbers.",
        ),
        values={"negative_share": shares, "molecules": len(graphs)},
        seeds=(run.record.seed,),
    )


def network_of(run: Run) -> CKGCN:
    """The run's network, which has kernels to draw."""
    if not isinstance(run.model, CKGCN):
        raise InputError(f"The run's model is a {type(run.model).__name__}, which has no kernels ψ: give another run.")
    return run.model


@torch.no_grad()
def kernels_of(model: CKGCN, data: Data) -> Kernels:
    """ψ on one molecule."""
    nodes = int(data.num_nodes)
    psi = layer_kernels(model, data).view(len(model.blocks), nodes, nodes, -1)
    adjacency = torch.zeros(nodes, nodes)
    adjacency[data.edge_index[0], data.edge_index[1]] = 1
    return Kernels(adjacency, psi, layout(data))


@torch.no_grad()
def layer_kernels(model: CKGCN, data: Data) -> Tensor:
    """ψ [L, P, D] in evaluation mode."""
    model.eval()
    batch = model.prepare(data)
    edges = None
    if model.edge_encoder is not None:
        edges = Edges(batch.edge_row, model.edge_encoder(batch.edge_features, batch.edge_row.shape[0]))
    features = model.pair_stem(batch.pairs, batch.degree, edges, batch.position)
    return torch.stack([values.stored for values in model.kernel(features, batch.pairs)])


def negative_shares(run: Run, molecules: list[Data]) -> list[float]:
    """Share of negative coefficients of each layer, over all pairs, channels and molecules."""
    counts = [(layer_kernels(network_of(run), each) < 0).flatten(1).double() for each in molecules]
    return torch.cat(counts, dim=1).mean(1).tolist()


def layout(data: Data) -> NDArray[np.float64]:
    """[n, 2] positions with small Σ_ij (|x_i - x_j|/d_ij - 1)², d the hop distance.

    Each atom moves half of the way to where the others, weighted by 1/d², would place it. They start from classical
    scaling with a small random shift, since nothing else would separate atoms that it places on top of each other.
    """
    nodes = int(data.num_nodes)
    distance = spd(pack(data.edge_index, None, None, nodes), nodes).values.view(nodes, nodes).double()
    distance = distance.where(distance >= 0, float(nodes))
    centre = torch.eye(nodes, dtype=torch.float64) - 1 / nodes
    values, vectors = torch.linalg.eigh(-0.5 * centre @ distance.square() @ centre)
    place = (vectors[:, -2:] * values[-2:].clamp(min=0).sqrt()).flip(1)
    place += 0.1 * torch.randn(nodes, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    weight = distance.clamp(min=1).pow(-2).fill_diagonal_(0).unsqueeze(-1)
    for _ in range(MOVES):
        offset = place.unsqueeze(1) - place
        wanted = place + offset * (distance / offset.norm(dim=-1).clamp(min=1e-9)).unsqueeze(-1)
        place = (place + (weight * wanted).sum(1) / weight.sum(1)) / 2
    return place.numpy()


def draw(shown: Kernels, shares: list[float], title: str) -> Figure:
    """Adjacency and ψ of three layers and channels; around one atom; the share of negative coefficients."""
    layers = sorted({0, len(shares) // 2, len(shares) - 1})
    figure = new_figure(2.1 * len(layers) + 2.4)
    figure.suptitle(title, fontsize=11)
    rows = figure.subplots(len(layers) + 1, len(CHANNELS) + 1, squeeze=False)
    for row, layer in zip(rows, layers, strict=False):
        _heat(row[0], shown.adjacency, "adjacency", "Greys")
        for axes, channel in zip(row[1:], CHANNELS, strict=True):
            _heat(axes, shown.psi[layer, :, :, channel], f"layer {layer + 1}, channel {channel + 1}", COLOURS)
    centre = int(shown.adjacency.sum(1).argmax())
    for axes, channel in zip(rows[-1], CHANNELS, strict=False):
        _around(axes, shown, layers[-1], channel, centre)
    bars = rows[-1][-1]
    bars.bar(range(1, len(shares) + 1), [100 * share for share in shares], color="tab:blue")
    bars.set_xticks(range(1, len(shares) + 1, 1 + len(shares) // 12))
    bars.set_xlabel("layer", fontsize=8)
    bars.set_title("ψ < 0 / %", fontsize=9)
    bars.tick_params(labelsize=7)
    return figure


def _heat(axes: Axes, values: Tensor, title: str, colours: str) -> None:
    limit = float(values.abs().max()) or 1.0
    lower = 0.0 if colours == "Greys" else -limit
    image = axes.imshow(values.numpy(), cmap=colours, vmin=lower, vmax=limit, interpolation="nearest")
    axes.set_title(title, fontsize=9)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.set_xlabel("atom j", fontsize=7, labelpad=2)
    axes.set_ylabel("atom i", fontsize=7, labelpad=2)
    if colours != "Greys":
        bar = axes.figure.colorbar(image, ax=axes, shrink=0.8)
        bar.ax.tick_params(labelsize=7)
        bar.set_label("ψ$_{ij}$", fontsize=8, labelpad=1)


def _around(axes: Axes, shown: Kernels, layer: int, channel: int, centre: int) -> None:
    """Coefficients with which every atom enters the value of one."""
    values: Any = shown.psi[layer, centre, :, channel].numpy()
    limit = float(np.abs(values).max()) or 1.0
    for i, j in shown.adjacency.triu().nonzero().tolist():
        axes.plot(*shown.place[[i, j]].T, color="lightgray", zorder=1)
    x, y = shown.place.T
    dots = axes.scatter(x, y, c=values, cmap=COLOURS, vmin=-limit, vmax=limit, s=40, edgecolors="gray", zorder=2)
    bar = axes.figure.colorbar(dots, ax=axes, location="bottom", shrink=0.8, aspect=25, pad=0.02)
    bar.ax.tick_params(labelsize=7)
    bar.set_label("ψ$_{ij}$", fontsize=8, labelpad=1)
    axes.scatter(x[centre], y[centre], s=110, facecolors="none", edgecolors="black", zorder=3)
    axes.set_title(f"layer {layer + 1}, channel {channel + 1},\naround atom i (ring)", fontsize=9)
    axes.set_aspect("equal")
    axes.margins(0.12)
    axes.set_axis_off()
