"""CKGConv as a single layer.

    x [N, in], edges  →  P, supp  →  ψ(P_ij)  →  y [N, out]        Eqs. 3 to 7

    any input → plain tensors    `layer_input`      names and values of options    `layer_options`
    P and supp                   `pairs`            in_channels=-1                 `lazy`
    ψ                            `layer_kernel`     what PyG's tools expect        `pyg_layer`
    y                            `convolution`

Legend: N nodes, E edges, S sources and T targets of a bipartite graph.
"""

from collections.abc import Callable
from typing import Any, Self, Unpack

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.checks import check_shape, check_whole, require
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.convolution import KernelConvolution
from ckgconv.nn.kernel import Kernel
from ckgconv.nn.layer_input import (
    Features,
    GivenInput,
    Sizes,
    check_attributes,
    checked_features,
    joined,
    plain_graph,
    plain_input,
)
from ckgconv.nn.layer_kernel import GivenKernel, MLPKernel
from ckgconv.nn.layer_options import LAZY, ConvOptions, channel_rule, chosen_options, one_width
from ckgconv.nn.lazy import Unbuilt, check_built, fill, first_parameter, saved_shape
from ckgconv.nn.pyg_layer import PyGLayer
from ckgconv.nn.stem import PairStem
from ckgconv.nn.step_memory import ChecksStepMemory
from ckgconv.ops.precision import wide_dtype
from ckgconv.pairs import EncodedGraphs, Encoding, Support
from ckgconv.pairs.adjacency import Adjacency
from ckgconv.pairs.encoded import (
    GraphInput,
    check_encoded,
    check_encoding,
    difference,
    encoded_graphs,
    own_copy,
    with_pairs,
)
from ckgconv.pairs.precomputed import check_pairs

ENCODE_FIRST = (
    "Coordinates and support have shapes that depend on the graph, so no program contains them: compute them first, "
    "pairs = conv.encode(edge_index, num_nodes=…), and call conv(x, edge_index, pairs=pairs)."
)


class CKGConv(ChecksStepMemory, PyGLayer):
    """Continuous kernel graph convolution, for use like any PyG layer.

    Args:
        in_channels: width of x; -1: that of the first call, as in PyG; of a bipartite graph also the pair of both.
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
        kernel_norm: "batch", "layer", "rms" or "none".
        kernel_dropout, mlp_dropout: on ψ, and inside its blocks.
        constraint: "none", "softmax" or "softplus".
        degree_scaler: "output" (Eq. 7), "coordinates" (Eq. 8) or "none".
        groups: grouped instead of depthwise-separable convolution, with full mixing inside each group.
        heads: multi-head convolution, one coefficient per pair and head.
        flow: "source_to_target", a node receives along its incoming edges as in PyG, or "target_to_source".
        cached: keep the coordinates of the first call, for layers on one graph; no other is accepted then.

    Shapes: x [N, in_channels] → [N, out_channels].

    Example:
        >>> conv = CKGConv(16, 32, pe="rrwp", steps=8, support="global")
        >>> conv(torch.randn(3, 16), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])).shape
        torch.Size([3, 32])
    """

    def __init__(
        self,
        in_channels: int | tuple[int, int],
        out_channels: int,
        pe: str = "rrwp",
        steps: int = 8,
        support: Support = "global",
        edge_dim: int | None = None,
        kernel: nn.Module | None = None,
        **options: Unpack[ConvOptions],
    ) -> None:
        chosen = chosen_options(options, kernel is not None)
        encoding = Encoding(pe, steps, 0, support, chosen["flow"])
        super().__init__(encoding.flow)
        self.in_channels = one_width(in_channels)
        for name, size in (("out_channels", out_channels), ("edge_dim", edge_dim)):
            if size is not None or name == "out_channels":
                check_whole(name, size, 1)
        self.out_channels = out_channels
        self.edge_dim = edge_dim
        self.encoding = encoding
        self.description = encoding.description
        self.options = chosen
        self._cache: EncodedGraphs | None = None
        self.convolution: KernelConvolution
        self.kernel: MLPKernel | GivenKernel
        if self.in_channels == LAZY:
            self._postpone(kernel)
        else:
            self.convolution, self.kernel = self._parts(self.in_channels, kernel)

    def _parts(self, in_channels: int, given: nn.Module | None) -> tuple[KernelConvolution, MLPKernel | GivenKernel]:
        """Convolution and kernel for a width of x."""
        options = self.options
        channels = channel_rule(in_channels, self.out_channels, options["groups"], options["heads"])
        convolution = KernelConvolution(channels, self.out_channels, options["degree_scaler"] == "output")
        inject = options["degree_scaler"] == "coordinates"
        if given is not None:
            return convolution, GivenKernel(given, self.encoding, channels.kernel, inject)
        width = options["kernel_width"] or max(in_channels, self.out_channels)
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
        return convolution, MLPKernel(self.encoding, stem, mlp, self.edge_dim)

    def _postpone(self, given: nn.Module | None) -> None:
        """Parameters of all names, without shapes."""
        groups = self.options["groups"]
        require(
            given is None or groups is None,
            "in_channels is -1 with groups and a kernel of your own, whose channels depend on it: give in_channels.",
        )
        with torch.device("meta"):
            parts = self._parts(groups or self.options["heads"] or 1, given)
        for name, part in zip(("convolution", "kernel"), parts, strict=True):
            self.add_module(name, Unbuilt(part, given))

    def _build(self, in_channels: int) -> None:
        """The modules of a postponed layer, with the parameters that it already has."""
        unbuilt = [self.convolution, self.kernel]
        kept = getattr(self.kernel, "module", None)
        like = first_parameter(unbuilt[0])  # type: ignore[arg-type]
        self.in_channels = in_channels
        parts = self._parts(in_channels, kept)
        for name, old, part in zip(("convolution", "kernel"), unbuilt, parts, strict=True):
            fill(old, part.to(like.device, like.dtype).train(self.training))
            setattr(self, name, part)

    def _load_from_state_dict(self, state_dict: dict[str, Tensor], prefix: str, *rest: Any) -> None:
        if self.in_channels != LAZY:
            check_built(state_dict, prefix)
        elif (width := self._saved_width(state_dict, prefix)) is not None:
            self._build(width)
        super()._load_from_state_dict(state_dict, prefix, *rest)

    def _saved_width(self, state_dict: dict[str, Tensor], prefix: str) -> int | None:
        """in_channels of a saved layer, from the shapes of its parameters."""
        groups = self.options["groups"]
        if groups is None:
            shape = saved_shape(state_dict, f"{prefix}convolution.projection.weight")
            return None if shape is None else shape[1]
        shape = saved_shape(state_dict, f"{prefix}kernel.mlp.linear.weight")
        return None if shape is None else shape[1] * groups // self.out_channels

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        self._cache = None  # it may be of another device or precision
        moved: Self = super()._apply(fn, recurse)
        return moved

    @property
    def kernel_channels(self) -> int:
        """Channels that a kernel must return."""
        return self.convolution.channels.kernel

    def reset_parameters(self) -> None:
        self._cache = None
        if self.in_channels != LAZY:
            self.kernel.reset_parameters()
            self.convolution.reset_parameters()

    def forward(
        self,
        x: Features,
        edge_index: Adjacency,
        edge_attr: Tensor | None = None,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        pairs: EncodedGraphs | Pairs | None = None,
    ) -> Tensor:
        """Args:
        x: [N, in_channels]; of a bipartite graph (x_source, x_target).
        edge_index: [2, E], sources above targets, or a sparse matrix whose rows are targets.
        edge_attr: [E, edge_dim]; batch: [N]; edge_weight: [E].
        pairs: what `encode` returned for these graphs, or a support of `ckgconv.pairs`.
        """
        given = GivenInput(x, edge_index, edge_attr, batch, edge_weight)
        if torch.compiler.is_compiling() and isinstance(pairs, EncodedGraphs):
            graph_batch = self._traced(given, pairs)
        else:
            graph_batch = self.prepare_step(given, pairs)
        nodes = graph_batch.node_features
        psi = self.kernel(graph_batch)
        degree = graph_batch.degree.to(self.parameter_dtype)
        y = self.convolution(nodes, psi, graph_batch.pairs, degree)
        return y[x[0].shape[0] :] if isinstance(x, tuple) else y

    @torch.compiler.disable(reason=ENCODE_FIRST)
    def encode(
        self,
        edge_index: Adjacency,
        batch: Tensor | None = None,
        edge_weight: Tensor | None = None,
        num_nodes: Sizes | None = None,
        support_index: Tensor | None = None,
    ) -> EncodedGraphs:
        """Coordinates and support of graphs, for `pairs` of this layer and of others with the same encoding.

        Args:
            edge_index, batch, edge_weight: as in `forward`.
            num_nodes: N, where there is no `batch`; (S, T) sources and targets of a bipartite graph.
            support_index: [2, S] sources above targets, a support in place of the layer's own.
        """
        if num_nodes is None:
            require(batch is not None, "Neither batch nor num_nodes was given: give the number of nodes.")
            assert batch is not None
            num_nodes = batch.shape[0]
        graph, _ = plain_graph(edge_index, batch, edge_weight, num_nodes, self.encoding.flow)
        return encoded_graphs(own_copy(graph.pack(self.encoding.flow)), self.encoding, self.dtype, support_index)

    @torch.compiler.disable(reason=ENCODE_FIRST)
    def prepare_step(self, given: GivenInput, pairs: EncodedGraphs | Pairs | None = None) -> GraphBatch:
        """`prepare`, where a step on the pairs fits into the memory of their device."""
        if pairs is None and isinstance(given.x, Tensor) and self.in_channels != LAZY:
            self.check_all_pairs(Data(x=given.x, batch=given.batch))
        graph_batch = self.prepare(given, pairs)
        self.check_step(graph_batch.pairs.coordinates.shape[0], graph_batch.degree.device)
        return graph_batch

    def step_bytes(self, rows: int) -> int:
        values = self.kernel.row_size(self.encoding.channels)
        parameters = sum(parameter.numel() for parameter in self.parameters())
        return values.step_bytes(rows, parameters, self.parameter_dtype)

    @torch.compiler.disable(reason=ENCODE_FIRST)
    def prepare(self, given: GivenInput, pairs: EncodedGraphs | Pairs | None = None) -> GraphBatch:
        """Check the input; compute coordinates and support where they are not given."""
        require(not torch.compiler.is_exporting(), ENCODE_FIRST)
        plain = self.masked(plain_input(given, self.encoding.flow), self.encoding)
        if self.in_channels == LAZY:
            self._build(plain.x.shape[1])
        plain = checked_features(plain, self.in_channels, self.edge_dim, self.parameter_dtype)
        return self._encoded(plain.graph, pairs).with_features(plain.x, plain.edge_attr)

    def _encoded(self, graph: GraphInput, pairs: EncodedGraphs | Pairs | None) -> EncodedGraphs:
        """Coordinates and support: those given, those of the first call, or new ones."""
        require(
            pairs is None or not self.explain,
            "pairs were encoded without an explainer's mask on the edges: explain without pairs.",
        )
        if isinstance(pairs, EncodedGraphs):
            check_encoded(pairs, graph, self.encoding, self.dtype)
            return pairs
        if self.options["cached"] and pairs is None and not self.explain:
            return self._cached(graph)
        graphs = graph.pack(self.encoding.flow)
        if pairs is None:
            return encoded_graphs(graphs, self.encoding, self.dtype)
        check_pairs(pairs, graphs, self.encoding, self.dtype)
        return with_pairs(graphs, self.encoding, self.dtype, pairs)

    def _cached(self, graph: GraphInput) -> EncodedGraphs:
        """Those of the first call; other graphs raise an error."""
        weight = graph.edge_weight
        require(
            weight is None or not weight.requires_grad,
            "edge_weight requires a gradient, so coordinates change from step to step: build the layer with "
            "cached=False.",
        )
        if self._cache is None:
            with torch.inference_mode(False), torch.no_grad():
                graphs = own_copy(graph.pack(self.encoding.flow))
                self._cache = encoded_graphs(graphs, self.encoding, self.dtype)
        known = self._cache.graphs
        different = difference(known, graph, self.encoding.flow)
        if different is None and weight is None and known.edge_weight is not None:
            different = "edge_weight"
        require(
            different is None,
            f"The layer has cached=True and was first called with another {different}: build it with cached=False, or "
            f"give each graph its pairs by conv.encode.",
        )
        return self._cache

    def _traced(self, given: GivenInput, encoded: EncodedGraphs) -> GraphBatch:
        """What `prepare` returns, after checks of shapes only: a compiled program cannot look at values."""
        require(self.in_channels != LAZY, "in_channels is -1: call the layer once before it is compiled or exported.")
        require(not self.explain, "An explainer's mask changes the coordinates: explain the layer uncompiled.")
        check_encoding(encoded, self.description)
        x, edge_attr = joined(given.x), given.edge_attr
        check_shape("x", x, (encoded.degree.shape[0], self.in_channels), "give the features of the encoded graphs.")
        check_attributes(edge_attr, self.edge_dim)
        if edge_attr is not None and edge_attr.dim() == 1:
            edge_attr = edge_attr.unsqueeze(-1)
        return encoded.with_features(x, edge_attr)

    @property
    def dtype(self) -> torch.dtype:
        """Of the coordinates: that of the parameters, at least float32."""
        return wide_dtype(self.parameter_dtype)

    @property
    def parameter_dtype(self) -> torch.dtype:
        return next(self.convolution.parameters()).dtype

    def extra_repr(self) -> str:
        encoding = self.encoding
        return (
            f"{self.in_channels} → {self.out_channels}, pe={encoding.name!r}, steps={encoding.steps}, "
            f"support={encoding.support!r}"
        )
