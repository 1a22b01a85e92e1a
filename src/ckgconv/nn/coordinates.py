"""Coordinates of a pair → channels a kernel can read, one module per `reading` of a pseudo-coordinate.

    normalised  `NormalisedEncoder`  γ BN(|supp(i)| P_ij) + β                         C channels, to be projected
    raw         `RawEncoder`         P_ij                                             C channels, to be projected
    table       `TableEncoder`       T[P_ij], a learned table                         D channels
    gaussian    `GaussianEncoder`    Gaussian basis g_c(P_ij); infinite: one vector   D channels

The first two may have sinusoids of P_ij as further channels (`sinusoids`).

A zero row stands for all pairs of a graph that are not stored (`graphs.Pairs`).

Legend: R rows (P stored pairs, then zero rows), C coordinate channels, D width.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import require
from ckgconv.graphs import Pairs
from ckgconv.nn.degree import DegreeInjection, degree_ratio
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.sinusoids import check_frequencies, with_frequencies, with_sinusoids
from ckgconv.pairs import UNREACHABLE, Encoding

# Truncated as in the published Gaussian basis, so that its numbers are reproduced to the last digit.
PI = 3.14159


class CoordinateEncoder(nn.Module):
    """Base of the four: `channels` of the output; where `embeds`, they are learned features of the stem's width."""

    channels: int
    embeds: bool

    def reset_parameters(self) -> None:
        """Nothing to reset unless a subclass has parameters."""

    def reads(self, pairs: Pairs, degree: Tensor) -> tuple[Tensor, ...]:
        """What the channels of a row depend on, apart from parameters and batch statistics: [R, …] each."""
        return (pairs.coordinates,)


class NormalisedEncoder(CoordinateEncoder):
    """γ BN(|supp(i)| P_ij) + β, for walk probabilities and other values to be normalised.

    With `inject_degree`, P̂ (Eq. 8) in place of P; without `rescales`, P_ij without the factor |supp(i)|; with
    `frequencies`, the sinusoids of P_ij are channels of their own (`sinusoids`).
    """

    embeds = False

    def __init__(
        self,
        channels: int,
        initial_scale: float,
        inject_degree: bool,
        rescales: bool = True,
        frequencies: int = 0,
    ) -> None:
        super().__init__()
        self.channels = with_frequencies(channels, frequencies)
        self.rescales = rescales
        self.frequencies = frequencies
        self.injection = DegreeInjection(channels) if inject_degree else None
        self.norm = WeightedBatchNorm(self.channels, initial_scale=initial_scale, skewed=True)

    def reset_parameters(self) -> None:
        if self.injection is not None:
            self.injection.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, pairs: Pairs, degree: Tensor) -> Tensor:
        return self.norm(self.scaled(pairs, degree), pairs.row_weight)

    def scaled(self, pairs: Pairs, degree: Tensor) -> Tensor:
        """The input of the norm, [R, C]."""
        coordinates = rescaled(pairs) if self.rescales else pairs.coordinates
        if self.injection is not None:
            coordinates = self.injection(coordinates, degree, pairs)
        return with_sinusoids(coordinates, pairs.coordinates, self.frequencies)

    def reads(self, pairs: Pairs, degree: Tensor) -> tuple[Tensor, ...]:
        coordinates = rescaled(pairs) if self.rescales else pairs.coordinates
        ratio = () if self.injection is None else (degree_ratio(coordinates, degree, pairs),)
        return coordinates, *ratio, *((pairs.coordinates,) if self.frequencies else ())


class RawEncoder(CoordinateEncoder):
    """Coordinates as they are.

    The stem projects them: pair-RWSE, RWSE(i) ‖ RWSE(j), becomes W RWSE(i) + U RWSE(j).
    """

    embeds = False

    def __init__(self, channels: int, frequencies: int = 0) -> None:
        super().__init__()
        self.channels = with_frequencies(channels, frequencies)
        self.frequencies = frequencies

    def forward(self, pairs: Pairs, degree: Tensor) -> Tensor:
        return with_sinusoids(pairs.coordinates, pairs.coordinates, self.frequencies)


class TableEncoder(CoordinateEncoder):
    """A learned vector for each whole number 0 … largest, such as a distance, and one for unreachable pairs.

    `largest` is the recipe's `steps`.
    """

    embeds = True

    def __init__(self, largest: int, width: int) -> None:
        super().__init__()
        self.channels = width
        self.table = nn.Embedding(largest + 2, width)

    def reset_parameters(self) -> None:
        self.table.reset_parameters()

    def forward(self, pairs: Pairs, degree: Tensor) -> Tensor:
        values = pairs.coordinates
        row = torch.where(values == UNREACHABLE, self.table.num_embeddings - 1, values)
        return F.embedding(row, self.table.weight)


class GaussianEncoder(CoordinateEncoder):
    """g_c(r) = exp(-½ ((r - μ_c)/s_c)²) / (√(2π) s_c), s_c = |σ_c| + 0.01, for one number such as a resistance.

    Pairs that are infinitely far apart, in different components, share one learned vector.
    """

    embeds = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.channels = width
        self.mean = nn.Parameter(torch.empty(width))
        self.spread = nn.Parameter(torch.empty(width))
        self.unreachable = nn.Parameter(torch.empty(width))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        nn.init.uniform_(self.mean, 0, 3)
        nn.init.uniform_(self.spread, 0, 3)
        nn.init.zeros_(self.unreachable)

    def forward(self, pairs: Pairs, degree: Tensor) -> Tensor:
        values = pairs.coordinates
        apart = torch.isinf(values)
        width = self.spread.abs() + 0.01
        offset = (values.masked_fill(apart, 0.0) - self.mean) / width
        basis = torch.exp(-0.5 * offset.square()) / ((2 * PI) ** 0.5 * width)
        return torch.where(apart, self.unreachable, basis)


def rescaled(pairs: Pairs) -> Tensor:
    """|supp(i)| · P_ij (Appendix A.2): removes the dependence of walk probabilities on the size of the support."""
    if pairs.rescaled is not None:
        return pairs.rescaled
    size = pairs.support_size.index_select(0, pairs.receiver).unsqueeze(-1)
    if not pairs.has_zero_rows:
        return pairs.coordinates * size
    # A zero row stays zero under any factor.
    return pairs.coordinates * F.pad(size, (0, 0, 0, pairs.coordinates.shape[0] - pairs.num_pairs))


def check_injection(encoding: Encoding, inject_degree: bool) -> None:
    """Eq. 8 is defined for random walks only."""
    require(
        not inject_degree or encoding.coordinate.walk_powers,
        f"Degrees are injected into random-walk coordinates, not into {encoding.name!r}: choose 'rrwp'.",
    )


def coordinate_encoder(
    encoding: Encoding, width: int, initial_scale: float, inject_degree: bool, frequencies: int = 0, added: int = 0
) -> CoordinateEncoder:
    """The module for the `reading` of an encoding's coordinates, to which `added` further channels were appended."""
    check_frequencies(encoding, frequencies)
    coordinate, channels = encoding.coordinate, encoding.channels + added
    if coordinate.reading == "normalised":
        return NormalisedEncoder(channels, initial_scale, inject_degree, coordinate.rescaled, frequencies)
    if coordinate.reading == "table":
        return TableEncoder(encoding.steps, width)
    if coordinate.reading == "gaussian":
        return GaussianEncoder(width)
    return RawEncoder(channels, frequencies)
