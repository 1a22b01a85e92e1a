"""Gradients of the parameters of all blocks, from what the kernels of the node pass leave behind.

    ∂W = Σ_n g_n h_nᵀ

Both factors of each matrix's gradient are there for all blocks, so that each kind of matrix takes one batched product.

Legend: L blocks, N nodes (a multiple of `PIECE`), D width, H hidden width.
"""

from torch import Tensor

PIECE = 128  # nodes of one product: one over all nodes would leave most of the GPU idle


def field_gradients(sums: Tensor, sums_out: Tensor, narrow: Tensor, wide: Tensor) -> list[Tensor]:
    """Gradients in the order of the fields of each block, from the sums [L, 6, D] and [L, 2, D] and the factors."""
    out_kept, u_kept, projected_kept, scaled_kept = narrow
    hidden_kept, gradient_hidden = wide
    width = sums.shape[2]
    weight = _summed_products(projected_kept, scaled_kept)[:, :width, :width].contiguous()
    weight_in = _summed_products(gradient_hidden, u_kept)[:, :, :width].contiguous()
    weight_out = _summed_products(out_kept, hidden_kept)[:, :width].contiguous()
    bias_in = gradient_hidden.unflatten(1, (-1, PIECE)).sum(2).sum(1)
    gradients: list[Tensor] = []
    for number in range(sums.shape[0]):
        shift, scale, theta1, theta2, bias, bias_out = sums[number].unbind(0)
        shift_out, scale_out = sums_out[number].unbind(0)
        gradients += [theta1, theta2, weight[number], bias, scale, shift]
        gradients += [weight_in[number], bias_in[number], weight_out[number], bias_out, scale_out, shift_out]
    return gradients


def _summed_products(left: Tensor, right: Tensor) -> Tensor:
    """Σ_n left_nᵀ right_n [L, A, B] from [L, N, A] and [L, N, B]: products of pieces first."""
    left, right = left.unflatten(1, (-1, PIECE)), right.unflatten(1, (-1, PIECE))
    return (left.mT @ right).sum(1)
