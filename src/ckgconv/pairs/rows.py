"""The support and P of some receivers of a large graph, exact, without the rows of the others (Section 3.2.1).

    supp(i) = {j : SPD_ij ≤ k}        P_ij = [I, M, …, M^K]_ij,   M = D⁻¹A        for i in a list of receivers

Row i of M^s is e_i M^s, found by s steps over lists of senders, with the degrees of the whole graph; the cost is that
of the nodes within max(K, k) hops of i. `StoredRows` keeps the rows of all receivers of a graph that does not change.

Legend: N nodes, R receivers, P pairs of these receivers, T pairs of the tables, C = K + 1 coordinate channels.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import PackedGraphs, entries_of
from ckgconv.pairs.encoding import Encoding
from ckgconv.pe.sparse import SparseMatrix
from ckgconv.pe.walk import sparse_transition

# Most steps of walks in a chunk of receivers; each takes about 60 bytes.
WALKED = 2**22


@dataclass(frozen=True)
class Rows:
    """The rows of R receivers within tables that may hold other rows too."""

    start: Tensor  # [R] int64, row r is entries start[r] … start[r] + size[r] - 1, ascending by sender
    size: Tensor  # [R] int64, |supp(i)|
    sender: Tensor  # [T] integers
    coordinates: Tensor  # [T, C]

    def all_entries(self) -> tuple[Tensor, Tensor]:
        """The number of the row, and the entry in the tables, of every pair [P]."""
        row, within = entries_of(self.size)
        return row, self.start[row] + within


class WalkedRows:
    """Rows that are computed anew for every request.

    Args:
        graphs: all graphs.
        encoding: random walks with a support of some hops.
        dtype: of the coordinates.
    """

    def __init__(self, graphs: PackedGraphs, encoding: Encoding, dtype: torch.dtype) -> None:
        check_rows(encoding)
        self.encoding = encoding
        self.matrix = sparse_transition(graphs, dtype)
        self.channels = encoding.channels
        self.steps = max(encoding.steps, encoding.reach)

    def rows(self, receivers: Tensor) -> Rows:
        """Of the given receivers [R]."""
        number = torch.arange(receivers.shape[0], device=receivers.device)
        ones = torch.ones(receivers.shape[0], dtype=self.matrix.values.dtype, device=receivers.device)
        powers = [SparseMatrix(number, receivers, ones, self.matrix.size)]
        for _ in range(self.steps):
            powers.append(powers[-1] @ self.matrix)
        keys = [power.keys() for power in powers]
        reached = torch.unique(torch.cat(keys[: self.encoding.reach + 1]))
        table = ones.new_zeros(reached.shape[0], self.channels)
        for channel in range(self.channels):
            place = torch.searchsorted(reached, keys[channel]).clamp(max=reached.shape[0] - 1)
            inside = reached[place] == keys[channel]
            table[place[inside], channel] = powers[channel].values[inside]
        size = torch.bincount(reached // self.matrix.size, minlength=receivers.shape[0])
        return Rows(size.cumsum(0) - size, size, reached % self.matrix.size, table)

    def chunks(self, receivers: Tensor) -> Iterator[Tensor]:
        """The receivers in parts whose walks take at most about `WALKED` steps each; one receiver may take more."""
        yield from split_by_cost(receivers, self._walks[receivers], WALKED)

    @cached_property
    def _walks(self) -> Tensor:
        """[N] int64, a bound of what the row of each node needs: its walks of at most `steps` steps, up to `WALKED`."""
        matrix = self.matrix
        ending = torch.ones(matrix.size, dtype=torch.int64, device=matrix.row.device)
        total = ending
        for _ in range(self.steps):
            ending = torch.zeros_like(total).index_add_(0, matrix.row, ending[matrix.column]).clamp_(max=WALKED)
            total = total + ending
        return total


class StoredRows:
    """Rows of all receivers, computed once and kept."""

    def __init__(self, size: Tensor, sender: Tensor, coordinates: Tensor) -> None:
        self.size = size  # [N]
        self.start = size.cumsum(0) - size
        self.sender = sender  # [T]
        self.coordinates = coordinates  # [T, C]
        self.channels = coordinates.shape[1]

    def rows(self, receivers: Tensor) -> Rows:
        """Of the given receivers [R]."""
        return Rows(self.start[receivers], self.size[receivers], self.sender, self.coordinates)

    def chunks(self, receivers: Tensor) -> Iterator[Tensor]:
        """The receivers in parts of at most about `WALKED` / 4 pairs each."""
        yield from split_by_cost(receivers, self.size[receivers], WALKED // 4)


@dataclass(frozen=True)
class Survey:
    """What one sweep over the rows of all receivers finds."""

    rows: WalkedRows | StoredRows  # stored if they fit
    node_part: Tensor  # [N, K] return probabilities


def survey(walked: WalkedRows, most_bytes: float) -> Survey:
    """Compute the rows of all receivers once, and keep them unless they need more than `most_bytes`."""
    skips = walked.encoding.coordinate.diagonal_skips
    nodes = torch.arange(walked.matrix.size, device=walked.matrix.row.device)
    node_parts, sizes, senders, tables, held = [], [], [], [], 0
    for chunk in walked.chunks(nodes):
        found = walked.rows(chunk)
        own = found.sender == chunk.repeat_interleave(found.size)
        node_parts.append(found.coordinates[own][:, skips:])
        held += found.coordinates.nbytes + 4 * found.sender.shape[0]
        if held <= most_bytes:
            sizes.append(found.size)
            senders.append(found.sender.int())
            tables.append(found.coordinates)
        else:
            sizes, senders, tables = [], [], []
    node_part = torch.cat(node_parts)
    if held > most_bytes:
        return Survey(walked, node_part)
    return Survey(StoredRows(torch.cat(sizes), torch.cat(senders), torch.cat(tables)), node_part)


def check_rows(encoding: Encoding) -> None:
    """Refuse encodings whose rows are not those of walks within some hops."""
    require(
        isinstance(encoding.support, int) and encoding.support >= 1,
        f"The support is {encoding.support!r}, and a part of a graph cannot be read without all of it then: choose a "
        f"number of hops, at least 1, or set training.sampling.kind to 'none'.",
    )
    require(
        encoding.coordinate.walk_powers,
        f"The encoding is {encoding.name!r}, whose values depend on the whole graph: choose 'rrwp', or set "
        f"training.sampling.kind to 'none'.",
    )


def split_by_cost(receivers: Tensor, cost: Tensor, most: int) -> Iterator[Tensor]:
    """Consecutive parts of the receivers [R], cut wherever their summed cost [R] passes a multiple of `most`."""
    if receivers.shape[0] == 0:
        return
    _, counts = torch.unique_consecutive(cost.cumsum(0) // most, return_counts=True)
    yield from receivers.split(counts.tolist())
