"""Laplacian eigenvectors: where a node lies in the slow vibrations of its graph.

    L φ_k = λ_k φ_k,  0 = λ_0 ≤ λ_1 ≤ …,  ‖φ_k‖ = 1,      L = I - D^(-½) A D^(-½)
    laplacian   node part  [φ_1 … φ_K]_i                  pair  P_ij = [φ_k(i) φ_k(j)]_k
    spectrum    node part  [φ_1 … φ_K]_i ‖ [λ_1 … λ_K]    pair  P_ij = [φ_k(i) φ_k(j)]_k ‖ [λ_k]_k

The sign of an eigenvector is arbitrary. Here it is the one with Σ_i φ_k(i)³ ≥ 0, which no numbering of the nodes
changes; where the sum is zero, or where eigenvalues coincide, as those of every ring do, the choice is that of the
solver. Networks that flip the signs in training (`PseudoCoordinate.signed`) learn not to depend on it; products of
pairs have no sign.

Legend: G graphs, N nodes, n nodes of the largest graph, P pairs, K steps. Directions, weights, self loops and isolated
nodes as for `heat`. A graph of n nodes has n - 1 such vectors; further channels are zero, those of their values too.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Coordinates, PackedGraphs
from ckgconv.pe.coordinate import PseudoCoordinate
from ckgconv.pe.heat import laplacian
from ckgconv.pe.layout import all_pairs, read_nodes
from ckgconv.pe.walk import working_dtype

# Sums of cubes up to this size are rounding error.
ZERO = 1e-9


def eigenvectors(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """[N, K] φ_1 … φ_K, computed in float64.

    Args:
        graphs: packed graphs on any device.
        steps: K.
        dtype: of the result; by default that of the edge weights, or torch's default.
    """
    # A compiled network reads rows of K channels, and batches that are kept do not keep eigenvalues.
    return spectrum(graphs, steps, dtype)[:, :steps].contiguous()


def spectrum(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Tensor:
    """[N, 2 K] φ_1 … φ_K of each node, and λ_1 … λ_K of its graph."""
    require(steps >= 1, f"steps is {steps}: give at least 1 eigenvector.")
    dtype = dtype or working_dtype(graphs)
    matrix = laplacian(graphs).detach()
    padded = matrix.new_zeros(graphs.num_graphs, graphs.largest, 2, steps)
    # Sizes one by one: next to padding, a solver could choose other vectors for eigenvalues that coincide, and what a
    # graph is read as would depend on its batch.
    for size in graphs.sizes.unique().tolist():
        chosen = graphs.sizes == size
        values, vectors = torch.linalg.eigh(matrix[chosen, :size, :size])
        values, vectors = values[:, None, 1 : steps + 1], vectors[:, :, 1 : steps + 1]
        # A sum that is zero up to rounding leaves the sign as it is.
        turned = vectors.pow(3).sum(1, keepdim=True) < -ZERO
        both = torch.stack([torch.where(turned, -vectors, vectors), values.expand_as(vectors)], dim=2)
        padded[chosen, :size, :, : both.shape[3]] = both
    return read_nodes(graphs, padded).flatten(1).to(dtype)


def laplacian_products(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """φ_k(i) φ_k(j) for every pair, [P, K]."""
    receiver, sender = all_pairs(graphs)
    vectors = eigenvectors(graphs, steps, dtype)
    return Coordinates(receiver, sender, vectors[receiver] * vectors[sender], complete=True)


def spectral_products(graphs: PackedGraphs, steps: int, dtype: torch.dtype | None = None) -> Coordinates:
    """φ_k(i) φ_k(j) and λ_k for every pair, [P, 2 K]."""
    receiver, sender = all_pairs(graphs)
    vectors, values = spectrum(graphs, steps, dtype).chunk(2, dim=-1)
    pairs = torch.cat([vectors[receiver] * vectors[sender], values[receiver]], dim=-1)
    return Coordinates(receiver, sender, pairs, complete=True)


LAPLACIAN = PseudoCoordinate(
    values=laplacian_products,
    channels=lambda steps: steps,
    reading="normalised",
    rescaled=True,  # each vector has length 1, so products of pairs are about 1/n
    node_values=eigenvectors,
    signed=True,
    bytes_per_cell=8 * 8,
)
SPECTRUM = replace(LAPLACIAN, values=spectral_products, channels=lambda steps: 2 * steps, node_values=spectrum)
