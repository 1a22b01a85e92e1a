"""Hybrid: continuous kernels and attention in one network, over one encoding of the pairs.

    h⁰, e⁰ = stems of CKGCN
    ψˡ, bˡ = kernels of block l (e⁰)         of all blocks at once; no pair has a state
    hˡ = block l (hˡ⁻¹),  l = 1 … L          Eq. 9 of CKGConv, around one of the mixings
    ŷ  = head(pool(hᴸ))

    turns        W S(c_i) + b in blocks 1, 3, …          W S(a_i) + b in blocks 2, 4, …
    parallel     W S([c_i ‖ a_i]) + b                     the part of W that reads a_i is 0 at first
    modulated    W S(m_i) + b                             Q is 0 at first, so that m_i = c_i

with S(z_i) = z_i ⊙ θ₁ + √d_i z_i ⊙ θ₂, and with

    c_i = 1/|supp(i)| Σ_j ψ_ij ⊙ h_j
    a_i = Σ_j softmax_{j ∈ supp(i)} (Q h_i · K h_j / √d + b_ij) V h_j                     H heads of d channels
    m_i = 1/|supp(i)| Σ_j ψ_ij ⊙ (1 + tanh(Q h_i) ⊙ tanh(K h_j)) ⊙ h_j

Legend: G graphs, N nodes, R rows of pairs, P stored pairs, L blocks, D width, H heads, T outputs.
"""

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor, nn

from ckgconv.checks import require
from ckgconv.graphs import Pairs
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.convolution import KernelConvolution
from ckgconv.nn.drop_path import drop_probability
from ckgconv.nn.dynamic import (
    AttentionConvolution,
    AttentionHeads,
    Gates,
    ModulatedConvolution,
    ParallelChannels,
    ParallelConvolution,
)
from ckgconv.nn.graph_model import count_parameters
from ckgconv.nn.head import make_head
from ckgconv.nn.kernel import Kernel, KernelValues
from ckgconv.nn.kernel_network import KernelNetwork, make_kernel
from ckgconv.recipe import HybridRecipe


class Hybrid(KernelNetwork):
    """The network of convolution and attention that a recipe describes.

    Args:
        recipe: encoders, widths, kernel, mixing, heads, support and head.

    Shapes: PyG `Data` or `Batch`, or a prepared `GraphBatch` → [G, T], or [N, T] where the head does not pool.
    """

    Recipe = HybridRecipe
    recipe: HybridRecipe

    def __init__(self, recipe: HybridRecipe) -> None:
        super().__init__(recipe)
        check_mixing(recipe)
        self.kernel = make_kernels(recipe)
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            CKGConvBlock(
                make_convolution(recipe, layer),
                recipe.width,
                recipe.norm,
                recipe.dropout,
                drop_path=drop_probability(recipe.drop_path, layer, recipe.blocks),
            )
            for layer in range(recipe.blocks)
        )
        self.head = make_head(recipe.head, self.head_width)

    def parameters_by_component(self) -> dict[str, int]:
        """Trainable parameters of each part; "attention" are queries, keys and values."""
        attention = count_parameters([block.convolution.channels for block in self.blocks])
        return {**super().parameters_by_component(), "attention": attention}


class KernelsInTurns(nn.Module):
    """ψ [P, D] of the convolutions and b [P, H] of the attention, in turns."""

    def __init__(self, convolution: Kernel, attention: Kernel) -> None:
        super().__init__()
        self.convolution = convolution
        self.attention = attention

    def forward(self, pair_features: Tensor, pairs: Pairs) -> Iterator[KernelValues]:
        convolution, attention = (
            iter(self.convolution(pair_features, pairs)),
            iter(self.attention(pair_features, pairs)),
        )
        for layer in range(self.convolution.layers + self.attention.layers):
            yield next(attention if is_attention(layer) else convolution)

    def of_layer(self, pair_features: Tensor, pairs: Pairs, layer: int) -> KernelValues:
        """ψ or b of one block."""
        kernel = self.attention if is_attention(layer) else self.convolution
        return kernel.of_layer(pair_features, pairs, layer // 2)

    def values_per_row(self) -> int:
        """κ of `step_memory`."""
        return self.convolution.values_per_row() + self.attention.values_per_row()


def is_attention(layer: int) -> bool:
    """Whether a block, counted from 0, attends where both kinds take turns."""
    return layer % 2 == 1


def check_mixing(recipe: HybridRecipe) -> None:
    """Refuse what a mixing cannot compute."""
    require(
        recipe.mixing == "modulated" or recipe.support != "sparse_global",
        f"model.mixing is {recipe.mixing!r}, whose attention has a score on every pair, so no zero row can stand for "
        f"the pairs of a sparse global support: choose support 'global' or a number of hops, or mixing 'modulated'.",
    )
    require(
        recipe.mixing != "turns" or recipe.blocks > 1,
        "model.blocks is 1, but with mixing 'turns' every second block attends: give 2 or more.",
    )
    require(
        recipe.mixing != "parallel" or recipe.kernel.constraint == "none",
        f"model.kernel.constraint is {recipe.kernel.constraint!r}, but with mixing 'parallel' one kernel yields ψ and "
        f"the biases of scores, which have any sign: choose 'none', or another mixing.",
    )


def make_kernels(recipe: HybridRecipe) -> Kernel | KernelsInTurns:
    """ψ and b of all blocks of a recipe."""
    layers, width, kernel = recipe.blocks, recipe.width, recipe.kernel
    if recipe.mixing == "modulated":
        return make_kernel(kernel, width, width, layers)
    # Dropout would set biases to zero: the convolution drops ψ, and attention its weights.
    biases = replace(kernel, dropout=0.0, constraint="none")
    if recipe.mixing == "parallel":
        return make_kernel(biases, width, width + recipe.heads, layers)
    attention = make_kernel(biases, width, recipe.heads, layers // 2)
    return KernelsInTurns(make_kernel(kernel, width, width, layers - layers // 2), attention)


def make_convolution(recipe: HybridRecipe, layer: int) -> KernelConvolution:
    """What block `layer`, counted from 0, has in place of CKGConv."""
    width, scaled = recipe.width, recipe.degree_scaler == "output"
    if recipe.mixing == "modulated":
        return ModulatedConvolution(Gates(width, recipe.attention_dropout), width, scaled)
    if recipe.mixing == "turns" and not is_attention(layer):
        return KernelConvolution(Depthwise(width), width, scaled)
    heads = AttentionHeads(width, recipe.heads, recipe.head_channels, recipe.attention_dropout)
    if recipe.mixing == "turns":
        return AttentionConvolution(heads, width, scaled)
    return ParallelConvolution(ParallelChannels(width, heads, recipe.kernel.dropout), width, scaled)
