"""CKGCN: encoders, stems, the kernels of all layers in one call, blocks, head (Section 3.2.6).

    graph → pseudo-coordinates → support → pair stem → ψ¹ … ψᴸ → block 1 … L → head

Legend: G graphs, N nodes, R rows of pairs, L blocks, D width, T outputs.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.backends.cuda.schedule import beside, now, together
from ckgconv.checks import check_finite, check_floating, check_shape, require
from ckgconv.graphs import GraphBatch
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.conv import KernelConvolution
from ckgconv.nn.encoders import AttributeEncoder, ConstantEncoder, LinearEncoder, Listed, Projected, TypeEncoder
from ckgconv.nn.head import NormalisedHead, Pool, PyramidHead
from ckgconv.nn.kernel import GivenKernels, Kernel
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.nn.stack import run_blocks
from ckgconv.nn.stem import NodeStem, PairStem
from ckgconv.ops import dispatch
from ckgconv.ops.dispatch import fits
from ckgconv.ops.launch import draw_seeds
from ckgconv.pairs import collate, encoding_of
from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, HeadRecipe, ModelRecipe
from ckgconv.recipe import Recipe as WholeRecipe
from ckgconv.recipe.values import check_recipe


class CKGCN(nn.Module):
    """The network a recipe describes.

    Args:
        recipe: encoders, widths, kernel, support and head.
        kernels: modules of the user's own in place of the recipe's kernel, one per block, each from pair features
            [R, D] to [R, D].

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.

    Example:
        >>> model = CKGCN.from_recipe("zinc")
        >>> data = Data(x=torch.tensor([[0], [1]]), edge_index=torch.tensor([[0, 1], [1, 0]]),
        ...             edge_attr=torch.tensor([[1], [1]]))
        >>> model.eval()(data).shape
        torch.Size([1, 1])
    """

    Recipe = CKGCNRecipe
    blocks: Sequence[CKGConvBlock]

    def __init__(self, recipe: CKGCNRecipe, kernels: Sequence[nn.Module] | None = None) -> None:
        super().__init__()
        check_recipe(recipe)
        self.recipe = recipe
        self.encoding = encoding_of(recipe)
        node_encoder = attribute_encoder(recipe.node, recipe.width)
        require(node_encoder is not None, "node.kind is 'none': a network needs node features, choose another.")
        assert node_encoder is not None
        self.node_encoder = node_encoder
        self.edge_encoder = attribute_encoder(recipe.edge, recipe.width)
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
        self.pool = Pool(recipe.head.pooling)
        self.head = head(recipe.head, recipe.width)

    @classmethod
    def from_recipe(cls, recipe: str | WholeRecipe | ModelRecipe) -> "CKGCN":
        """The paper's model for a data set ("zinc", "mnist", …), or that of any recipe."""
        if isinstance(recipe, str):
            # Named recipes know the models, so they come after them: the one import against the order.
            from ckgconv.recipes import recipe as recipe_of

            recipe = recipe_of(recipe)
        model = recipe.model if isinstance(recipe, WholeRecipe) else recipe
        require(
            isinstance(model, cls.Recipe),
            f"The recipe is one of kind {model.kind!r}, not of {cls.__name__}: build it with that kind's class.",
        )
        assert isinstance(model, cls.Recipe)
        return cls(model)

    def reset_parameters(self) -> None:
        parts = (self.node_encoder, self.edge_encoder, self.node_stem, self.pair_stem, self.kernel, self.head)
        for module in (*parts, *self.blocks):
            if module is not None:
                module.reset_parameters()

    def forward(self, data: Data | GraphBatch) -> Tensor:
        batch = data if isinstance(data, GraphBatch) else self.prepare(data)
        h = self.pool(self.node_states(batch), batch.pairs.node_graph, batch.node_ptr)
        with full_precision(h.device):
            return self.head(h.to(self.node_stem.norm.scale.dtype))

    def node_states(self, batch: GraphBatch) -> Tensor:
        """h^L [N, D], what the head reads."""
        with full_precision(batch.degree.device):
            begin = now()
            with beside():
                seeds = (
                    draw_seeds(batch.degree.device, 2) if self.training and dispatch.uses_triton(batch.degree) else None
                )
            edge_attributes = self._edge_attributes(batch)
            pair_features, part = self.pair_stem.with_moments(
                batch.pairs, batch.degree, batch.edge_row, edge_attributes, batch.position
            )
            if part is None:
                together()  # for the seeds; a fused stem has done so
            # Beside all this and the kernels of all layers, and joined by `run_blocks` where blocks begin.
            with beside(since=begin):
                attributes = self.node_encoder(batch.node_features, batch.node_features.shape[0])
                h: Tensor = self.node_stem(attributes, batch.node_encoding, batch.node_weight, batch.node_filled)
        return run_blocks(self.blocks, self.kernel, h, pair_features, part, seeds, batch)

    def _edge_attributes(self, batch: GraphBatch) -> Tensor | Projected | Listed | None:
        """Embedded attributes [E, D]; what they are made of on a GPU, where that is put on pairs first."""
        encoder, edges, features = self.edge_encoder, batch.edge_row.shape[0], batch.edge_features
        if encoder is None:
            return None
        if self.recipe.combine != "sum" or not dispatch.uses_triton(batch.degree):
            return encoder(features, edges)
        if isinstance(encoder, TypeEncoder):
            assert features is not None
            single = len(encoder.tables) == 1
            return Listed(features[:, 0], encoder.tables[0].weight) if single else encoder(features, edges)
        return encoder.factors(features, edges)  # type: ignore[arg-type]

    @property
    def sums_in_order(self) -> bool:
        """Whether all sums over nodes and pairs run in fused passes, which keep one order."""
        norms = [self.kernel.norm if isinstance(self.kernel, Kernel) else None, *(b.ffn_norm for b in self.blocks)]
        constraint = self.kernel.constraint if isinstance(self.kernel, Kernel) else None
        passes = ("none",) if self.encoding.support == "sparse_global" else ("none", "softmax")
        narrow = fits(self.node_stem.norm.scale, 1, self.recipe.width)
        return narrow and constraint in passes and all(isinstance(norm, WeightedBatchNorm) for norm in norms)

    @torch.compiler.disable
    def prepare(self, data: Data) -> GraphBatch:
        """Check the input, compute coordinates and support on the device of `data`; nothing is learned here."""
        dtype = self.pair_stem.norm.scale.dtype
        data = self._with_position(data, dtype)
        batch = collate(data, self.encoding, dtype)
        if self.recipe.position_channels:
            batch = replace(batch, position=data.pos)
        self.node_encoder.check("x", batch.node_features, batch.node_features.shape[0])
        if self.edge_encoder is not None:
            self.edge_encoder.check("edge_attr", batch.edge_features, batch.edge_row.shape[0])
        return batch

    def _with_position(self, data: Data, dtype: torch.dtype) -> Data:
        """Superpixels: positions join the node features."""
        channels = self.recipe.position_channels
        if not channels:
            return data
        for name in ("x", "pos"):
            require(getattr(data, name, None) is not None, f"data has no {name}: give node values and positions.")
        x = data.x.unsqueeze(-1) if data.x.dim() == 1 else data.x
        check_shape("pos", data.pos, (data.num_nodes, channels), "give one position per node.")
        for name in ("x", "pos"):
            check_floating(name, data[name], dtype)
            check_finite(name, data[name])
        joined = copy(data)
        joined.x = torch.cat([x, data.pos], dim=-1)
        return joined

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
        return {
            name: sum(weight.numel() for part in parts if part is not None for weight in part.parameters())
            for name, parts in components.items()
        }

    def extra_repr(self) -> str:
        encoding = self.encoding
        return f"encoding={encoding.name!r}, steps={encoding.steps}, support={encoding.support!r}"


def full_precision(device: torch.device) -> torch.autocast:
    """Stems and heads under autocast too: they cost little, and the raw coordinates span decades."""
    return torch.autocast(device.type, enabled=False)


def attribute_encoder(recipe: AttributeRecipe, width: int) -> AttributeEncoder | None:
    """The encoder of a recipe's kind."""
    if recipe.kind == "none":
        return None
    if recipe.kind == "constant":
        return ConstantEncoder(width)
    if recipe.kind == "linear":
        return LinearEncoder(recipe.sizes[0], width)
    return TypeEncoder(recipe.sizes, width, "normal" if recipe.kind == "types" else "xavier")


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


def head(recipe: HeadRecipe, width: int) -> PyramidHead | NormalisedHead:
    """The head of a recipe's kind."""
    kind = PyramidHead if recipe.kind == "pyramid" else NormalisedHead
    return kind(width, recipe.outputs, recipe.layers)
