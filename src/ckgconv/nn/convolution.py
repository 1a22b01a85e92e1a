"""Scaled continuous-kernel convolution (Eqs. 3 and 4), with the degree scaler (Eq. 7) between sum and projection.

    z_i = 1/|supp(i)| Σ_{j ∈ supp(i)} x_j ⊙ ψ(P_ij)
    y_i = W ( z_i ⊙ θ₁ + √d_i · z_i ⊙ θ₂ ) + b                without the scaler: y_i = W z_i + b

Zero rows, where a support has them, stand for all pairs of a graph that are not stored (`graphs.Pairs`).

Legend: N nodes, E edges, P pairs, C coordinate channels, D channels of the convolution.
"""

from torch import Tensor, nn

from ckgconv.graphs import Pairs
from ckgconv.nn.channels import Channels
from ckgconv.nn.degree import DegreeScaler
from ckgconv.nn.kernel import KernelValues
from ckgconv.ops.convolution import Graphs, Orders, SenderLists, scaled_convolution, sparse_global_convolution
from ckgconv.ops.distinct import Support, distinct_convolution
from ckgconv.ops.rows import Order


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
        return self.projected(self.summed(x, psi, pairs), degree)

    def summed(self, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
        """Sums over the support [N, D]."""
        return self.channels.collect(convolve(self.channels, x, psi, pairs))

    def projected(self, y: Tensor, degree: Tensor) -> Tensor:
        """Degree scaler and projection: sums over the support [N, D], degree [N] → [N, out]."""
        if self.degree_scaler is not None:
            y = self.degree_scaler(y, degree)
        return self.projection(y)


def convolve(channels: Channels, x: Tensor, psi: KernelValues, pairs: Pairs) -> Tensor:
    """1/|supp(i)| Σ_j x_j ⊙ ψ_ij on matched channels, [N, D]."""
    x, stored = channels.widen(x), channels.widen_kernel(psi.stored)
    if psi.rows is not None:
        support = Support(pairs.receiver, pairs.sender, pairs.support_size, pairs.rowptr)
        return distinct_convolution(x, stored, support, psi.rows)
    if psi.background is None:
        return mean_over_support(x, stored, pairs)
    background, graphs = channels.widen_kernel(psi.background), Graphs(pairs.node_graph, pairs.graph_ptr)
    indices, orders = (pairs.receiver, pairs.sender, pairs.support_size), Orders(pairs.rowptr, sender_lists(pairs))
    return sparse_global_convolution(x, stored, background, *indices, graphs, orders)


def mean_over_support(x: Tensor, weights: Tensor, pairs: Pairs) -> Tensor:
    """1/|supp(i)| Σ_j x_j ⊙ w_ij [N, D] of x [N, D] and weights [P, D] of stored pairs."""
    orders = Orders(pairs.rowptr, sender_lists(pairs))
    return scaled_convolution(x, weights, pairs.receiver, pairs.sender, pairs.support_size, orders)


def sender_order(pairs: Pairs) -> Order | None:
    """The rows of each sender, where the batch includes them."""
    if pairs.sender_ptr is None or pairs.sender_rows is None:
        return None
    return Order(pairs.sender_ptr, pairs.sender_rows)


def sender_lists(pairs: Pairs) -> SenderLists | None:
    """The order by senders, where the batch includes it."""
    if pairs.sender_ptr is None or pairs.sender_rows is None or pairs.sender_receiver is None:
        return None
    return SenderLists(pairs.sender_ptr, pairs.sender_rows, pairs.sender_receiver)
