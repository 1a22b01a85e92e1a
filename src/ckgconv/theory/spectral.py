"""CKGConv with a linear kernel is any polynomial spectral filter (Proposition 4.2).

    Σ_k θ_k Ã^k x,   Ã = D^-½ A D^-½ = D^½ M D^-½,   from P̂_ij = d_i^½ P_ij d_j^-½ and ψ(p) = θᵀ p

Filters in other bases are first written as powers of Ã, with L = I - Ã.
"""

import numpy as np
import torch
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import cheb2poly
from numpy.typing import ArrayLike, NDArray
from scipy.special import comb
from torch import nn

from ckgconv.nn import CKGConv
from ckgconv.nn.layer_kernel import GivenKernel
from ckgconv.theory.fixed import bare_convolution

Coefficients = NDArray[np.float64]

# L and 2I - L as polynomials of Ã.
LAPLACIAN = Polynomial([1.0, -1.0])
COMPLEMENT = Polynomial([1.0, 1.0])


def polynomial_filter(coefficients: Coefficients, channels: int = 1, dtype: torch.dtype = torch.float64) -> CKGConv:
    """y = Σ_k coefficients[k] Ã^k x on every channel, for graphs of any size; isolated nodes keep k = 0 alone."""
    order = len(coefficients) - 1
    kernel = nn.Linear(order + 1, channels, bias=False)
    conv = bare_convolution(channels, kernel, pe="rrwp", steps=order, degree_scaler="coordinates").to(dtype)
    assert isinstance(conv.kernel, GivenKernel)
    assert conv.kernel.injection is not None
    with torch.no_grad():
        kernel.weight.copy_(torch.as_tensor(coefficients, dtype=dtype).expand(channels, -1))
        conv.kernel.injection.theta1.zero_()
        conv.kernel.injection.theta2.fill_(1)
        conv.kernel.injection.theta3.fill_(1)
    return conv


def laplacian_monomials(theta: Coefficients) -> Coefficients:
    """Σ_k θ_k L^k."""
    return _as_coefficients(sum((t * LAPLACIAN**k for k, t in enumerate(theta)), Polynomial([0.0])), len(theta))


def chebyshev(theta: Coefficients) -> Coefficients:
    """Σ_k θ_k T_k(L - I): the Chebyshev filter with largest eigenvalue 2; L - I = -Ã."""
    signs = (-1.0) ** np.arange(len(theta))
    return _padded(cheb2poly(theta), len(theta)) * signs


def bernstein(theta: Coefficients) -> Coefficients:
    """Σ_k θ_k 2^-K binom(K, k) (2I - L)^(K-k) L^k, K = len(θ) - 1: θ_k is the response near eigenvalue 2k/K."""
    order = len(theta) - 1
    terms = (t * comb(order, k) / 2**order * COMPLEMENT ** (order - k) * LAPLACIAN**k for k, t in enumerate(theta))
    return _as_coefficients(sum(terms, Polynomial([0.0])), len(theta))


def personalised_pagerank(alpha: float, steps: int) -> Coefficients:
    """Σ_{k<K} α (1-α)^k Ã^k + (1-α)^K Ã^K: K steps of the diffusion with restart probability α."""
    powers = (1 - alpha) ** np.arange(steps + 1)
    return np.append(alpha * powers[:-1], powers[-1])


def _as_coefficients(polynomial: Polynomial, length: int) -> Coefficients:
    return _padded(polynomial.coef, length)


def _padded(coefficients: ArrayLike, length: int) -> Coefficients:
    """numpy drops vanishing leading terms; the filter keeps its order."""
    given = np.asarray(coefficients, dtype=np.float64)
    return np.pad(given, (0, length - len(given)))
