"""CKGCN: encoders, stems, the kernels of all layers, blocks, head (Section 3.2).

    h⁰ = node stem(attributes, diagonal of P)
    e⁰ = pair stem(P, edge attributes)
    ψˡ = kernel l (e⁰)                     of all layers at once, since no kernel depends on node features
    hˡ = block l (hˡ⁻¹, ψˡ),  l = 1 … L
    ŷ  = head(pool(hᴸ))

Legend: G graphs, N nodes, R rows of pairs, L blocks, D width, T outputs.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from ckgconv.checks import require
from ckgconv.graphs import GraphBatch
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.conv import KernelConvolution
from ckgconv.nn.graph_model import GraphModel, count_parameters
from ckgconv.nn.head import make_head
from ckgconv.nn.kernel import GivenKernels, Kernel
from ckgconv.nn.stem import Edges, NodeStem, PairStem
from ckgconv.ops.precision import without_autocast
from ckgconv.recipe import CKGCNRecipe


class CKGCN(GraphModel):
    """The network a recipe describes.

    Args:
        recipe: encoders, widths, kernel, support and head.
        kernels: custom modules instead of the recipe's kernel, one per block, each from pair features [R, D] to
            [R, D].

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.

    Example:
        >>> model = CKGCN.from_recipe("zinc")
        >>> data = Data(x=torch.tensor([[0], [1]]), edge_index=torch.tensor([[0, 1], [1, 0]]),
        ...             edge_attr=torch.tensor([[1], [1]]))
        >>> model.eval()(data).shape
        torch.Size([1, 1])
    """

    Recipe = CKGCNRecipe
    recipe: CKGCNRecipe
    blocks: Sequence[CKGConvBlock]

    def __init__(self, recipe: CKGCNRecipe, kernels: Sequence[nn.Module] | None = None) -> None:
        super().__init__(recipe)
        self.node_stem = NodeStem(self.encoding.node_channels, recipe.width, recipe.combine)
        self.pair_stem = PairStem(
            self.encoding,
            recipe.width,
            recipe.combine,
            initial_scale=recipe.coordinate_scale,
            inject_degree=recipe.degree_scaler == "coordinates",
            position_channels=recipe.position_channels,
        )
        self.kernel = grouped_kernel(recipe) if kernels is None else GivenKernels(kernels)
        require(
            kernels is None or len(kernels) == recipe.blocks,
            f"{len(kernels or [])} kernels were given for {recipe.blocks} blocks: give one per block.",
        )
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            conv_block(recipe) for _ in range(recipe.blocks)
        )
        self.head = make_head(recipe.head, recipe.width)

    def node_states(self, batch: GraphBatch) -> Tensor:
        """hᴸ [N, D]."""
        pairs = batch.pairs
        e, h = self._pair_features(batch), self.input_states(batch)
        for block, psi in zip(self.blocks, self.kernel(e, pairs), strict=True):
            h = block(h, psi, pairs, batch.degree, batch.node_weight)
        return h

    @property
    def depth(self) -> int:
        return len(self.blocks)

    def input_states(self, batch: GraphBatch) -> Tensor:
        """h⁰ [N, D]."""
        with without_autocast(batch.degree):
            attributes = self.node_encoder(batch.node_features, batch.node_features.shape[0])
            return self.node_stem(attributes, batch.node_encoding, batch.node_weight)

    def layer_states(self, layer: int, states: Tensor, batch: GraphBatch) -> Tensor:
        """hˡ [N, D] from hˡ⁻¹ [N, D]; `layer` counts from 0."""
        psi = self.kernel.of_layer(self._pair_features(batch), batch.pairs, layer)
        return self.blocks[layer](states, psi, batch.pairs, batch.degree, batch.node_weight)

    def _pair_features(self, batch: GraphBatch) -> Tensor:
        """e⁰ [R, D]."""
        with without_autocast(batch.degree):
            return self.pair_stem(batch.pairs, batch.degree, self._edges(batch), batch.position)

    def _edges(self, batch: GraphBatch) -> Edges | None:
        if self.edge_encoder is None:
            return None
        return Edges(batch.edge_row, self.edge_encoder(batch.edge_features, batch.edge_row.shape[0]))

    @property
    def pair_traffic(self) -> int:
        """Those of the tensors [L, R, D] of the kernels: forward, convolution, backward."""
        blocks = self.recipe.kernel.blocks
        stages = 2 * blocks + 1
        forward = stages + (stages - 1) + max(blocks - 1, 0)  # outputs, inputs but the shared first, residuals likewise
        convolution = 3  # ψ forward and backward, its gradient
        backward = 2 * stages + 2 * (stages - 1) + blocks + max(blocks - 1, 0) + 1 + min(blocks, 1)
        return (forward + convolution + backward) * self.recipe.blocks * self.recipe.width

    def parameters_by_component(self) -> dict[str, int]:
        """Trainable parameters of each part."""
        blocks = list(self.blocks)
        components: dict[str, list[nn.Module | None]] = {
            "node_encoder": [self.node_encoder],
            "edge_encoder": [self.edge_encoder],
            "node_stem": [self.node_stem],
            "pair_stem": [self.pair_stem],
            "kernels": [self.kernel],
            "degree_scalers": [block.convolution.degree_scaler for block in blocks],
            "output_projections": [block.convolution.projection for block in blocks],
            "ffn": [module for block in blocks for module in (block.ffn_in, block.ffn_out)],
            "block_norms": [module for block in blocks for module in (block.convolution_norm, block.ffn_norm)],
            "head": [self.head],
        }
        return {name: count_parameters(parts) for name, parts in components.items()}


def grouped_kernel(recipe: CKGCNRecipe) -> Kernel:
    """The kernels of all blocks of a recipe."""
    return Kernel(
        recipe.width,
        recipe.width,
        layers=recipe.blocks,
        blocks=recipe.kernel.blocks,
        norm=recipe.kernel.norm,
        mlp_dropout=recipe.kernel.mlp_dropout,
        kernel_dropout=recipe.kernel.dropout,
        constraint=recipe.kernel.constraint,
    )


def conv_block(recipe: CKGCNRecipe) -> CKGConvBlock:
    """One block of a recipe."""
    convolution = KernelConvolution(
        Depthwise(recipe.width), recipe.width, degree_scaler=recipe.degree_scaler == "output"
    )
    return CKGConvBlock(convolution, recipe.width, recipe.norm, recipe.dropout)
