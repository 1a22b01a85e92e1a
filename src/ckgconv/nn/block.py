"""One block of the network (Eq. 9): norm ∘ (x + FFN) ∘ norm ∘ (x + CKGConv).

Legend: N nodes, D width.
"""

from torch import Tensor, nn
from torch.nn import functional as F

from ckgconv.checks import check_probability
from ckgconv.graphs import Pairs
from ckgconv.nn.convolution import KernelConvolution
from ckgconv.nn.drop_path import DropPath, on_path
from ckgconv.nn.initialise import small_normal
from ckgconv.nn.kernel import KernelValues
from ckgconv.nn.linear import Linear
from ckgconv.nn.norm import NormName, make_norm
from ckgconv.ops.dropout import dropout


class CKGConvBlock(nn.Module):
    """Convolution and feed-forward network, each followed by a residual sum and a norm.

    Args:
        convolution: [N, D] → [N, D].
        width: D.
        norm: "batch" or "layer"; LayerNorm erases the degree.
        dropout: before each residual sum.
        ffn_ratio: hidden width of the feed-forward network, as a multiple of D.
        drop_path: probability with which both branches of a graph are dropped, see `drop_path`.

    Shapes: x [N, D] → [N, D].
    """

    def __init__(
        self,
        convolution: KernelConvolution,
        width: int,
        norm: NormName = "batch",
        dropout: float = 0.0,
        ffn_ratio: int = 2,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        check_probability("dropout", dropout)
        self.dropout = dropout
        self.drop_path = DropPath(drop_path)
        self.convolution = convolution
        self.convolution_norm = make_norm(norm, width)
        self.ffn_in = Linear(width, ffn_ratio * width)
        self.ffn_out = Linear(ffn_ratio * width, width)
        self.ffn_norm = make_norm(norm, width)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        for module in (self.convolution, self.convolution_norm, self.ffn_in, self.ffn_out, self.ffn_norm):
            module.reset_parameters()
        small_normal(self.ffn_in.weight)
        small_normal(self.ffn_out.weight)

    def forward(
        self,
        x: Tensor,
        psi: KernelValues,
        pairs: Pairs,
        degree: Tensor,
        node_weight: Tensor | None = None,
        path: Tensor | None = None,
    ) -> Tensor:
        """`path` [N, 1]: the factor of both branches that `drop_path` has drawn for the batch; None: 1."""
        convolved = self._drop(self.convolution(x, psi, pairs, degree))
        x = self.convolution_norm(x + on_path(convolved, path), node_weight)
        x = self.ffn_norm(x + on_path(self._drop(self.ffn_out(F.gelu(self.ffn_in(x)))), path), node_weight)
        # Norms ignore padding nodes, so they could grow from block to block until 0 · ∞ is NaN.
        return x if node_weight is None else x * node_weight.unsqueeze(-1)

    def _drop(self, x: Tensor) -> Tensor:
        return dropout(x, self.dropout, self.training)

    def extra_repr(self) -> str:
        return f"dropout={self.dropout}"
