"""Scaled continuous-kernel convolution (Eqs. 3 and 4), with the degree scaler (Eq. 7) between sum and projection.

    z_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ(P_ij)
    y_i = W ( z_i ⊙ θ₁ + √d_i · z_i ⊙ θ₂ ) + b                without the scaler: y_i = W z_i + b

Zero rows, where a support has them, stand for all pairs of a graph that are not stored (`graphs.Pairs`).

Legend: N nodes, E edges, P pairs, C coordinate channels, D channels of the convolution.
"""

from typing import Literal, TypedDict, Unpack, get_args

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.checks import check_choice, check_whole, require
from ckgconv.graphs import SOURCE_TO_TARGET, Flow, GraphBatch, Pairs
from ckgconv.nn.channels import Channels, Depthwise, Grouped, MultiHead
from ckgconv.nn.degree import DegreeScaler
from ckgconv.nn.kernel import Constraint, Kernel, KernelValues
from ckgconv.nn.layer_input import LayerInput, checked
from ckgconv.nn.layer_kernel import GivenKernel, MLPKernel
from ckgconv.nn.norm import NormName
from ckgconv.nn.stem import PairStem
from ckgconv.ops.convolution import Graphs, Orders, SenderLists, scaled_convolution, sparse_global_convolution
from ckgconv.ops.precision import wide_dtype
from ckgconv.pairs import Encoding, Support, collate
from ckgconv.registry import nearest

DegreeScalerName = Literal["output", "coordinates", "none"]


class KernelConvolution(nn.Module):
    """Convolves node features with given kernel values, scales by degree and projects.

    Args:
        channels: how channels of ψ combine with channels of x: depthwise, grouped or multi-head.
        out_channels: of the projection W, b.
        degree_scaler: whether Eq. 7 follows the convolution.

    Shapes: x [N, in], `KernelValues`, `Pairs`, degree [N] → [N, out].
    """

    def __init__(self, channels: Channels, out_channels: int, degree_scaler: bool = True) -> None:
        super().__init__()
        self.channels = channels
        self.degree_scaler = DegreeScaler(channels.convolved) if degree_scaler else None
        self.projection = nn.Linear(channels.convolved, out_channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        self.channels.reset_parameters()
        if self.degree_scaler is not None:
            self.degree_scaler.reset_parameters()
        self.projection.reset_parameters()
        nn.init.xavier_normal_(self.projection.weight)

    def forward(self, x: Tensor, psi: KernelValues, pairs: Pairs, degree: Tensor) -> Tensor:
        y = self.channels.collect(convolve(self.channels, x, psi, pairs))
        if self.degree_scaler is not None:
            y = self.degree_scaler(y, degree)
        return self.projection(y)


class ConvOptions(TypedDict, total=False):
    """Options of a layer other than its channels, coordinates and support."""

    kernel_blocks: int
    kernel_width: int | None
    kernel_norm: NormName
    kernel_dropout: float
    mlp_dropout: float
    constraint: Constraint
    degree_scaler: DegreeScalerName
    groups: int | None
    heads: int | None
    flow: Flow


DEFAULTS = ConvOptions(
    kernel_blocks=2,
    kernel_width=None,
    kernel_norm="batch",
    kernel_dropout=0.0,
    mlp_dropout=0.0,
    constraint="none",
    degree_scaler="output",
    groups=None,
    heads=None,
    flow=SOURCE_TO_TARGET,
)
MLP_OPTIONS = ("kernel_blocks", "kernel_width", "kernel_norm", "kernel_dropout", "mlp_dropout", "constraint")


class CKGConv(nn.Module):
    """Continuous kernel graph convolution, for use like any PyG layer.

    Args:
        in_channels: width of x.
        out_channels: width of the result.
        pe: pseudo-coordinates, "rrwp", "spd", "rd", "pair_rwse", "heat" or another name of `COORDINATES`.
        steps: random-walk steps ("rrwp": I, M … M^steps); largest distance for "spd"; times for "heat"; unused by "rd".
        support: "global", "sparse_global" (the same numbers without forming n² pairs; "rrwp" only), or k hops.
        edge_dim: width of `edge_attr`, None where edges have none.
        kernel: any module from coordinates [P, C] to `kernel_channels` [P, ·], instead of the MLP kernel. It
            receives the rescaled coordinates, followed by the edge attributes where `edge_dim` is given; a distance
            is one column (-1: unreachable by "spd", infinite by "rd").
        kernel_blocks: residual MLP blocks of ψ, 0 for a linear kernel.
        kernel_width: width of ψ's blocks, by default the larger of in_channels and out_channels.
        kernel_norm: "batch", "layer" or "none".
        kernel_dropout, mlp_dropout: on ψ, and inside its blocks.
        constraint: "none", "softmax" or "softplus".
        degree_scaler: "output" (Eq. 7), "coordinates" (Eq. 8) or "none".
        groups: grouped instead of depthwise-separable convolution, with full mixing inside each group.
        heads: multi-head convolution, one coefficient per pair and head.
        flow: "source_to_target", a node receives along its incoming edges as in PyG, or "target_to_source".

    Shapes: x [N, in_channels] → [N, out_channels].

    Example:
        >>> conv = CKGConv(16, 32, pe="rrwp", steps=8, support="global")
        >>> conv(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 32])
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        pe: str = "rrwp",
        steps: int = 8,
        support: Support = "global",
        edge_dim: int | None = None,
        kernel: nn.Module | None = None,
        **options: Unpack[ConvOptions],
    ) -> None:
        super().__init__()
        chosen = ConvOptions(**{**DEFAULTS, **_known(options)})
        check_choice("degree_scaler", chosen["degree_scaler"], get_args(DegreeScalerName))
        sizes = {"in_channels": in_channels, "out_channels": out_channels, "edge_dim": edge_dim}
        sizes |= {name: chosen[name] for name in ("kernel_width", "groups", "heads")}
        for name, size in sizes.items():
            if size is not None or name.endswith("_channels"):
                check_whole(name, size, 1)
        check_whole("kernel_blocks", chosen["kernel_blocks"], 0)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.edge_dim = edge_dim
        self.encoding = Encoding(pe, steps, 0, support, chosen["flow"])
        channels = channel_rule(in_channels, out_channels, chosen["groups"], chosen["heads"])
        self.convolution = KernelConvolution(channels, out_channels, chosen["degree_scaler"] == "output")
        inject = chosen["degree_scaler"] == "coordinates"
        self.kernel: MLPKernel | GivenKernel
        if kernel is None:
            stem, mlp = self._mlp_kernel(channels, inject, chosen)
            self.kernel = MLPKernel(stem, mlp, edge_dim)
        else:
            require(
                all(chosen[name] == DEFAULTS[name] for name in MLP_OPTIONS),  # type: ignore[literal-required]
                "A kernel was given together with options of the MLP kernel, which would not be read: give one.",
            )
            self.kernel = GivenKernel(kernel, self.encoding, channels.kernel, inject)

    def _mlp_kernel(self, channels: Channels, inject: bool, options: "ConvOptions") -> tuple[PairStem, Kernel]:
        width = options["kernel_width"] or max(self.in_channels, self.out_channels)
        stem = PairStem(self.encoding, width, inject_degree=inject)
        mlp = Kernel(
            width,
            channels.kernel,
            blocks=options["kernel_blocks"],
            norm=options["kernel_norm"],
            kernel_dropout=options["kernel_dropout"],
            mlp_dropout=options["mlp_dropout"],
            constraint=options["constraint"],
        )
        return stem, mlp

    @property
    def kernel_channels(self) -> int:
        """Channels that a kernel must return."""
        return self.convolution.channels.kernel

    def reset_parameters(self) -> None:
        self.kernel.reset_parameters()
        self.convolution.reset_parameters()

    def forward(
        self,
        x: Tensor,
        edge_index: Tensor,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        pairs: Pairs | None = None,
    ) -> Tensor:
        """Args:
        x: [N, in_channels].
        edge_index: [2, E], sources above targets; edge_attr: [E, edge_dim]; batch: [N]; edge_weight: [E].
        pairs: precomputed support with its coordinates (`ckgconv.pairs`), instead of the layer's own.
        """
        graph_batch = self.prepare(LayerInput(x, edge_index, edge_attr, batch, edge_weight), pairs)
        psi = self.kernel(graph_batch)
        degree = graph_batch.degree.to(self.convolution.projection.weight.dtype)
        return self.convolution(x, psi, graph_batch.pairs, degree)

    @torch.compiler.disable
    def prepare(self, given: LayerInput, pairs: Pairs | None = None) -> GraphBatch:
        """Check the input and compute coordinates and support."""
        dtype = self.convolution.projection.weight.dtype
        data = Data(**checked(given, self.in_channels, self.edge_dim, dtype)._asdict())
        return collate(data, self.encoding, wide_dtype(dtype), pairs)

    def extra_repr(self) -> str:
        encoding = self.encoding
        return (
            f"{self.in_channels} → {self.out_channels}, pe={encoding.name!r}, steps={encoding.steps}, "
            f"support={encoding.support!r}"
        )


def _known(options: ConvOptions) -> ConvOptions:
    """The options, after a check that all their names exist."""
    for name in options:
        require(name in DEFAULTS, f"CKGConv has no option {name!r}: {nearest(name, list(DEFAULTS))}")
    return options


def convolve(channels: Channels, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
    """1/|supp(i)| Σ_j x_j ⊙ ψ_ij on matched channels, [N, D]."""
    x, stored = channels.spread(x), channels.spread_kernel(psi.stored)
    indices, orders = (pairs.receiver, pairs.sender, pairs.support_size), Orders(pairs.rowptr, sender_lists(pairs))
    if psi.background is None:
        return scaled_convolution(x, stored, *indices, orders)
    background, graphs = channels.spread_kernel(psi.background), Graphs(pairs.node_graph, pairs.graph_ptr)
    return sparse_global_convolution(x, stored, background, *indices, graphs, orders)


def sender_lists(pairs: Pairs) -> SenderLists | None:
    """The order by senders, where the batch includes it."""
    if pairs.sender_ptr is None or pairs.sender_rows is None or pairs.sender_receiver is None:
        return None
    return SenderLists(pairs.sender_ptr, pairs.sender_rows, pairs.sender_receiver)


def channel_rule(in_channels: int, out_channels: int, groups: int | None, heads: int | None) -> Channels:
    """Depthwise unless groups or heads are given."""
    require(groups is None or heads is None, "Both groups and heads were given: choose one of them.")
    if groups is not None:
        return Grouped(in_channels, out_channels, groups)
    return Depthwise(in_channels) if heads is None else MultiHead(in_channels, heads)
