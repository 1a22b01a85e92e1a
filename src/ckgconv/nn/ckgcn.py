"""CKGCN: encoders, stems, the kernels of all layers, blocks, head (Section 3.2).

    h⁰ = node stem(attributes, diagonal of P)
    e⁰ = pair stem(P, edge attributes)
    ψˡ = kernel l (e⁰)                     of all layers at once, since no kernel depends on node features
    hˡ = block l (hˡ⁻¹, ψˡ),  l = 1 … L
    ŷ  = head(pool(hᴸ))

Legend: G graphs, N nodes, R rows of pairs, L blocks, D width, T outputs.
"""

from collections.abc import Sequence

from torch import nn

from ckgconv.checks import require
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.convolution import KernelConvolution
from ckgconv.nn.drop_path import drop_probability
from ckgconv.nn.head import make_head
from ckgconv.nn.kernel import GivenKernels, Kernel
from ckgconv.nn.kernel_network import KernelNetwork, make_kernel
from ckgconv.recipe import CKGCNRecipe


class CKGCN(KernelNetwork):
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
    kernel: Kernel | GivenKernels

    def __init__(self, recipe: CKGCNRecipe, kernels: Sequence[nn.Module] | None = None) -> None:
        super().__init__(recipe)
        width, blocks = recipe.width, recipe.blocks
        self.kernel = make_kernel(recipe.kernel, width, width, blocks) if kernels is None else GivenKernels(kernels)
        require(
            kernels is None or len(kernels) == blocks,
            f"{len(kernels or [])} kernels were given for {blocks} blocks: give one per block.",
        )
        self.blocks = nn.ModuleList(  # type: ignore[assignment]
            conv_block(recipe, layer) for layer in range(blocks)
        )
        self.head = make_head(recipe.head, self.head_width)

    @property
    def pair_traffic(self) -> int:
        """Those of the tensors [L, R, D] of the kernels: forward, convolution, backward."""
        blocks = self.recipe.kernel.blocks
        stages = 2 * blocks + 1
        forward = stages + (stages - 1) + max(blocks - 1, 0)  # outputs, inputs but the shared first, residuals likewise
        convolution = 3  # ψ forward and backward, its gradient
        backward = 2 * stages + 2 * (stages - 1) + blocks + max(blocks - 1, 0) + 1 + min(blocks, 1)
        return (forward + convolution + backward) * self.recipe.blocks * self.recipe.width


def conv_block(recipe: CKGCNRecipe, layer: int) -> CKGConvBlock:
    """Block `layer` of a recipe, counted from 0."""
    convolution = KernelConvolution(
        Depthwise(recipe.width), recipe.width, degree_scaler=recipe.degree_scaler == "output"
    )
    path = drop_probability(recipe.drop_path, layer, recipe.blocks)
    return CKGConvBlock(convolution, recipe.width, recipe.norm, recipe.dropout, drop_path=path)
