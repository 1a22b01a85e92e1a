"""Pairs that no kernel can tell apart, computed once.

    ψ_ij = ψ_kl   where coordinates as a kernel reads them, |supp(i)| P_ij and |supp(k)| P_kl, are equal, and so are
                  the attributes of edges

Pairs of molecules repeat: of those of 64 molecules, with eight steps, a third are distinct. Batch statistics weight
each kind by its number of pairs, so they equal those of all pairs. Dropout inside the kernel draws a mask for every
pair, so with it every pair is computed.

Legend: N nodes, E edges, R rows of pairs (P stored pairs, then zero rows), U kinds.
"""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.ops.distinct import Distinct, distinct_rows, spread_rows


class Kinds(NamedTuple):
    """One pair of each kind, and the pairs they stand for."""

    batch: GraphBatch  # of U pairs, one of each kind, weighted by how often it occurs
    rows: Distinct
    pairs: Pairs  # all of them

    def to_all_pairs(self, psi: Tensor) -> Tensor:
        """ψ [U, C] of each kind → [R, C] of every row."""
        return spread_rows(psi, self.rows)


def kinds_of_pairs(batch: GraphBatch, reads: tuple[Tensor, ...]) -> Kinds | None:
    """The kinds of the pairs of a batch, or None where too few pairs are equal to save time.

    `reads` are tensors [R, …]: what a kernel reads of a row, apart from the attributes of its edges.
    """
    pairs, attributes = batch.pairs, batch.edge_features
    learned = attributes is not None and attributes.requires_grad
    # The number of kinds depends on the graphs, and shapes of a compiled program must not.
    if learned or torch.compiler.is_compiling() or pairs.num_pairs == 0:
        return None
    rows = distinct_rows(*reads, *_edge_kinds(batch))
    if rows is None:
        return None
    kept = torch.full((len(rows.kind),), -1).scatter_(0, rows.representative, torch.arange(len(rows.representative)))
    edge_row = kept.index_select(0, batch.edge_row)
    there = (edge_row >= 0).nonzero().squeeze(1)
    chosen = replace(
        batch,
        pairs=_chosen_pairs(pairs, rows),
        edge_row=edge_row.index_select(0, there),
        edge_features=None if attributes is None else attributes.index_select(0, there),
    )
    return Kinds(chosen, rows, pairs)


def _chosen_pairs(pairs: Pairs, rows: Distinct) -> Pairs:
    """One pair of each kind; a zero row becomes a pair whose coordinates are zero."""
    weight = rows.copies.to(pairs.support_size.dtype)
    if pairs.row_weight is not None:
        weight = torch.zeros_like(weight).index_add_(0, rows.kind, pairs.row_weight)
    return replace(
        pairs,
        receiver=_on_rows(pairs.receiver, pairs).index_select(0, rows.representative),
        sender=_on_rows(pairs.sender, pairs).index_select(0, rows.representative),
        coordinates=pairs.coordinates.index_select(0, rows.representative),
        rescaled=None if pairs.rescaled is None else pairs.rescaled.index_select(0, rows.representative),
        row_weight=weight,
    )


def _edge_kinds(batch: GraphBatch) -> list[Tensor]:
    """[R] the kind of the edges on each row, by the sum of their attributes and their number; 0 without edges."""
    if batch.edge_features is None:
        return []
    features, number = batch.edge_features, torch.ones(len(batch.edge_row), 1, dtype=batch.edge_features.dtype)
    on_row, place = torch.unique(batch.edge_row, return_inverse=True)
    summed = features.new_zeros(len(on_row), features.shape[1] + 1)
    summed.index_add_(0, place, torch.cat([features, number], dim=1))
    kinds = distinct_rows(summed)
    kind = torch.arange(len(on_row)) if kinds is None else kinds.kind
    return [torch.zeros(len(batch.pairs.coordinates), dtype=torch.int64).scatter_(0, on_row, kind + 1)]


def _on_rows(values: Tensor, pairs: Pairs) -> Tensor:
    """[P] → [R]: zero on zero rows."""
    missing = pairs.coordinates.shape[0] - pairs.num_pairs
    return torch.cat([values, values.new_zeros(missing)]) if missing else values
