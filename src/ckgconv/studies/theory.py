"""The equivalences of `ckgconv.theory`, measured: spectral filters, set networks, and what norms do to the degree.

    filter   Uᵀ C U = diag(p(λ)), C a CKGConv with a linear kernel and L = U diag(λ) Uᵀ    (Proposition 4.2)
    set      γ x_i + β mean(x) + b, whatever the edges                                     (Proposition 4.1)
    degree   LN(f(d_i) x_i) = LN(x_i), while BN(f(d_i) x_i) ≠ BN(x_i)                      (Appendix C.4)

Everything in float64. Legend: N nodes, E edges, D channels.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import exp, factorial

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray
from torch import Tensor

from ckgconv.nn.norm import NORMS, NormName
from ckgconv.studies.report import Cell, Options, Report, new_figure
from ckgconv.studies.toy import both_directions
from ckgconv.theory import chebyshev, degree_survives, personalised_pagerank, polynomial_filter, set_layer

SEEDS = (0, 1, 2, 3, 4)
NODES = 40
CHORDS = 60
CHANNELS = 8
ORDER = 16
RESTART = 0.15
HEAT = 3.0
# What the paper says a norm does to the degree.
ERASES: dict[NormName, tuple[str, str]] = {"layer": ("LayerNorm", "erased"), "batch": ("BatchNorm", "kept")}
Response = Callable[[NDArray[np.float64]], NDArray[np.float64]]

NOTE = f"""\
Graphs of {NODES} nodes, a ring with up to {CHORDS} random chords, one per seed; the largest error over all seeds, in
float64. "Equal" means equal in exact arithmetic: what remains is rounding.

*Filters.* A CKGConv with a linear kernel over RRWP of I and {ORDER} powers, degrees injected, is applied to every
eigenvector of the normalised Laplacian; its response is compared with the polynomial of order {ORDER} at the
eigenvalue, and everything it mixes into other eigenvectors counts as error too. The last column is no error of CKGConv:
it is how far a polynomial of that order is from the ideal response, for any polynomial network. Low-pass and band-pass
interpolate at Chebyshev points; PageRank is the diffusion with restart probability {RESTART}, stopped after {ORDER}
steps; heat is the Taylor series of exp(-{HEAT:g}λ).

*Set network.* One convolution with P = [I] and ψ(p) = γp + β against the formula, on the graph and on its nodes without
any edge.

*Degree.* The largest change that scaling the rows of a mean aggregation by d or √d leaves after the norm; for
BatchNorm, which keeps it, the smallest over the seeds."""


@dataclass(frozen=True)
class Filter:
    """A response over the eigenvalues of L, and the coefficients of a polynomial in Ã that approximates it."""

    name: str
    ideal: Response
    coefficients: NDArray[np.float64]

    def polynomial(self, eigenvalues: NDArray[np.float64]) -> NDArray[np.float64]:
        """Σ_k c_k (1 - λ)^k."""
        return Polynomial(self.coefficients)(1 - eigenvalues)


def theory(options: Options) -> Report:
    """Errors of every equivalence, and their pictures."""
    seeds = options.seeds or SEEDS
    graphs = {seed: random_graph(seed) for seed in seeds}
    rows: list[tuple[Cell, ...]] = [filter_row(each, list(graphs.values())) for each in filters()]
    rows.extend(set_rows(graphs))
    rows.extend(degree_rows(graphs))
    exact = max(float(row[2]) for row in rows if row[1] == "equal" and row[2] is not None)
    power = int(np.ceil(np.log10(exact)))
    title = f"CKGConv equals polynomial filters and set networks to 1e{power}; LayerNorm erases the degree"
    return Report(
        title=title,
        columns=(
            "statement",
            "paper",
            "ours, largest difference",
            f"polynomial of order {ORDER}, from the ideal response",
        ),
        rows=rows,
        figure=draw(title, graphs[seeds[0]], seeds[0]),
        notes=(NOTE,),
        values={str(name): {"paper": paper, "ours": ours, "ideal": ideal} for name, paper, ours, ideal in rows},
        seeds=seeds,
    )


def filters() -> list[Filter]:
    """The responses of the page."""

    def low_pass(eigenvalue: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.cos(np.pi * eigenvalue / 4) ** 2

    def band_pass(eigenvalue: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-8 * (eigenvalue - 1) ** 2)

    def pagerank(eigenvalue: NDArray[np.float64]) -> NDArray[np.float64]:
        return RESTART / (1 - (1 - RESTART) * (1 - eigenvalue))

    def heat(eigenvalue: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.exp(-HEAT * eigenvalue)

    series = np.array([exp(-HEAT) * HEAT**k / factorial(k) for k in range(ORDER + 1)])
    return [
        Filter("low-pass, cos²(πλ/4)", low_pass, interpolated(low_pass)),
        Filter("band-pass, exp(-8(λ-1)²)", band_pass, interpolated(band_pass)),
        Filter("personalised PageRank", pagerank, personalised_pagerank(RESTART, ORDER)),
        Filter("heat, exp(-3λ)", heat, series),
    ]


def interpolated(response: Response) -> NDArray[np.float64]:
    """Coefficients in Ã of the interpolation at Chebyshev points of [0, 2]."""
    series = Chebyshev.interpolate(lambda shifted: response(shifted + 1), ORDER)
    return chebyshev(np.asarray(series.coef, dtype=np.float64))


def random_graph(seed: int) -> Tensor:
    """[2, E] a ring with random chords: connected, of different degrees."""
    generator = np.random.default_rng(seed)
    ring = {(i, (i + 1) % NODES) for i in range(NODES)}
    chords = {(int(min(pair)), int(max(pair))) for pair in generator.integers(NODES, size=(CHORDS, 2))}
    apart = {(i, j) for i, j in chords if 1 < j - i < NODES - 1}
    return both_directions(sorted(ring | apart))


def spectrum(edge_index: Tensor) -> tuple[Tensor, Tensor]:
    """Eigenvalues [N] and eigenvectors [N, N] of L = I - D^-½ A D^-½."""
    adjacency = torch.zeros(NODES, NODES, dtype=torch.float64)
    adjacency[edge_index[0], edge_index[1]] = 1
    root = adjacency.sum(1).rsqrt()
    values, vectors = torch.linalg.eigh(torch.eye(NODES, dtype=torch.float64) - root[:, None] * adjacency * root)
    return values, vectors


@torch.no_grad()
def measured_response(each: Filter, edge_index: Tensor) -> tuple[NDArray[np.float64], Tensor]:
    """Eigenvalues [N], and Uᵀ C U [N, N] of the CKGConv C that is the filter."""
    values, vectors = spectrum(edge_index)
    convolution = polynomial_filter(each.coefficients, channels=NODES)
    return values.numpy(), vectors.mT @ convolution(vectors, edge_index)


def filter_row(each: Filter, graphs: list[Tensor]) -> tuple[Cell, ...]:
    """Largest error against the polynomial, and the polynomial's against the ideal response."""
    errors = []
    for edge_index in graphs:
        eigenvalues, response = measured_response(each, edge_index)
        errors.append(float((response - torch.diag(torch.as_tensor(each.polynomial(eigenvalues)))).abs().max()))
    grid = np.linspace(0, 2, 401)
    return each.name, "equal", max(errors), float(np.abs(each.polynomial(grid) - each.ideal(grid)).max())


@torch.no_grad()
def set_output(edge_index: Tensor, seed: int) -> tuple[Tensor, Tensor]:
    """A random set layer's output [N, D] by formula and by CKGConv."""
    generator = torch.Generator().manual_seed(seed)
    gamma, beta, bias = torch.randn(3, CHANNELS, generator=generator, dtype=torch.float64)
    x = torch.randn(NODES, CHANNELS, generator=generator, dtype=torch.float64)
    return gamma * x + beta * x.mean(0) + bias, set_layer(gamma, beta, bias)(x, edge_index)


def set_rows(graphs: dict[int, Tensor]) -> list[tuple[Cell, ...]]:
    """With the graph's edges, and without any."""
    rows: list[tuple[Cell, ...]] = []
    for name, kept in (("set network, edges present", None), ("set network, edges removed", 0)):
        outputs = [set_output(edge_index[:, :kept], seed) for seed, edge_index in graphs.items()]
        rows.append((name, "equal", max(float((ours - formula).abs().max()) for formula, ours in outputs), None))
    return rows


def degree_rows(graphs: dict[int, Tensor]) -> list[tuple[Cell, ...]]:
    """What remains of d and of √d after each norm."""
    rows: list[tuple[Cell, ...]] = []
    for norm, (label, paper) in ERASES.items():
        for factor, scale in (("d", 1.0), ("√d", 0.5)):
            changes = []
            for seed, edge_index in graphs.items():
                x = torch.randn(NODES, CHANNELS, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
                changes.append(degree_survives(norm, x, degrees(edge_index) ** scale))
            # What is erased must vanish in the worst case, what is kept must show in the weakest.
            rows.append((f"{factor} after {label}", paper, max(changes) if paper == "erased" else min(changes), None))
    return rows


def degrees(edge_index: Tensor) -> Tensor:
    """[N]"""
    return torch.bincount(edge_index[0], minlength=NODES).double()


def draw(title: str, edge_index: Tensor, seed: int) -> Figure:
    """Responses over the eigenvalues; set outputs; degree after each norm."""
    figure = new_figure(7.4)
    panels = figure.subplot_mosaic([["filters", "filters"], ["set", "degree"]], height_ratios=[1.25, 1])
    draw_filters(panels["filters"], edge_index)
    draw_set(panels["set"], edge_index, seed)
    draw_degree(panels["degree"], edge_index)
    figure.suptitle(title, fontsize=12)
    return figure


def draw_filters(axes: Axes, edge_index: Tensor) -> None:
    """Ideal curves, and the response of CKGConv at each eigenvalue."""
    grid = np.linspace(0, 2, 401)
    for each in filters():
        (line,) = axes.plot(grid, each.ideal(grid), linewidth=1.2)
        eigenvalues, response = measured_response(each, edge_index)
        axes.plot(eigenvalues, response.diag().numpy(), "o", markersize=4, color=line.get_color(), label=each.name)
    axes.set_title("Filters: ideal response (lines) and CKGConv on each eigenvector (dots)", fontsize=11)
    axes.set_xlabel("eigenvalue λ of the normalised Laplacian")
    axes.set_ylabel("response")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)


def draw_set(axes: Axes, edge_index: Tensor, seed: int) -> None:
    """CKGConv over the formula."""
    formula, ours = set_output(edge_index, seed)
    axes.plot(formula.flatten().numpy(), ours.flatten().numpy(), "o", markersize=3)
    axes.axline((0, 0), slope=1, color="black", linewidth=0.8)
    axes.set_title("Set network: CKGConv on P = [I]", fontsize=11)
    axes.set_xlabel("γ x + β mean(x) + b")
    axes.set_ylabel("CKGConv")
    axes.grid(alpha=0.3)


@torch.no_grad()
def draw_degree(axes: Axes, edge_index: Tensor) -> None:
    """One channel of √d x with the same x at every node: all that differs is the degree."""
    degree = degrees(edge_index)
    x = torch.linspace(-1, 2, CHANNELS, dtype=torch.float64)
    scaled = degree.sqrt().unsqueeze(-1) * x
    for norm, (label, paper) in ERASES.items():
        after = NORMS[norm](CHANNELS).double()(scaled)[:, -1]
        marker = "s" if norm == "layer" else "o"
        axes.plot(degree.numpy(), after.numpy(), marker, markersize=5, label=f"{label}: {paper}")
    axes.set_title("√d x after the norm, x the same everywhere", fontsize=11)
    axes.set_xlabel("degree d")
    axes.set_ylabel("last channel")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=9)
