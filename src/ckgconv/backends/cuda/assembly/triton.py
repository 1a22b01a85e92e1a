"""The members of a batch in four Triton launches; the equations are in `naive`.

A batch has few graphs, so every program sums their sizes itself, and finds the graph of a row by comparing the row with
the bounds of all graphs.

Legend: G graphs, N nodes, P pairs, E edges: capacities, not counts; n nodes of the largest graph.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import torch
import triton
import triton.language as tl
from torch import Tensor

from ckgconv.backends.cuda.assembly.naive import Capacity, Edges, Members, Ragged
from ckgconv.ops.launch import power_of_two

ROWS, PAIR_ROWS = 64, 128  # of a program
MOST_GRAPHS, MOST_PAIRS = 256, 2**31 - PAIR_ROWS  # a row is compared with every graph, and counted in 32 bits


@triton.jit
def extents(pointers, numbers, graphs, GRAPHS: tl.constexpr):
    """[GRAPHS] first row of each graph in the store, and its number of rows; none from `graphs` on."""
    graph = tl.arange(0, GRAPHS)
    number = tl.load(numbers + graph, mask=graph < graphs, other=-1)
    first = tl.load(pointers + number, mask=number >= 0, other=0)
    stop = tl.load(pointers + number + 1, mask=number >= 0, other=0)
    return first, (stop - first).to(tl.int32)


@triton.jit
def before(counts):
    """[GRAPHS] the sum of the counts of all graphs before each."""
    return tl.cumsum(counts, axis=0) - counts


@triton.jit
def owners(row, start, counts):
    """[ROWS, GRAPHS] whether a row belongs to a graph."""
    return (row[:, None] >= start[None, :]) & (row[:, None] < (start + counts)[None, :])


@triton.jit
def chosen(owner, values):
    """[ROWS] the value of the graph that a row belongs to, 0 for padding."""
    return tl.sum(tl.where(owner, values[None, :], 0), axis=1)


@triton.jit
def place_nodes(
    node_ptr, numbers, graphs, index, owner, start, real, sizes, pair_start, filled, rowptr, support_size, diagonal,
    nodes, pairs, ROWS: tl.constexpr, GRAPHS: tl.constexpr,
):  # fmt: skip
    """What belongs to nodes; the first program also writes what belongs to graphs."""
    first, size = extents(node_ptr, numbers, graphs, GRAPHS)
    node_start, pair_first = before(size), before(size * size)
    graph = tl.arange(0, GRAPHS)
    total, all_pairs = tl.sum(size, axis=0), tl.sum(size * size, axis=0)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mine = owners(row, node_start, size)
    there, inside = row < total, row < nodes
    local, length = row - chosen(mine, node_start), chosen(mine, size)
    tl.store(index + row, tl.where(there, chosen(mine, first) + local, 0), mask=inside)
    tl.store(owner + row, tl.where(there, chosen(mine, graph), graphs), mask=inside)
    tl.store(real + row, there.to(tl.uint8), mask=inside)
    begin = tl.where(there, chosen(mine, pair_first) + local * length, all_pairs)
    tl.store(rowptr + row, begin, mask=row <= nodes)
    tl.store(support_size + row, tl.maximum(length, 1).to(tl.float32), mask=inside)
    tl.store(diagonal + row, tl.where(there, begin + local, pairs - 1), mask=inside)
    if tl.program_id(0) == 0:
        tl.store(start, 0)
        tl.store(start + 1 + graph, node_start + size, mask=graph < graphs)
        tl.store(sizes + graph, size, mask=graph < graphs)
        tl.store(pair_start + graph, pair_first, mask=graph < graphs)
        tl.store(filled, all_pairs)


@triton.jit
def place_edges(
    node_ptr, edge_ptr, receiver, sender, stride, numbers, graphs, edge, edge_row, edge_node, cell, degree,
    edges, pairs, largest, ROWS: tl.constexpr, GRAPHS: tl.constexpr,
):  # fmt: skip
    """Edges, the pair, the receiver and the cell of M of each, and degrees."""
    first, count = extents(edge_ptr, numbers, graphs, GRAPHS)
    _, size = extents(node_ptr, numbers, graphs, GRAPHS)
    start = before(count)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mine = owners(row, start, count)
    there, inside = row < tl.sum(count, axis=0), row < edges
    number = tl.where(there, chosen(mine, first) + row - chosen(mine, start), 0)
    i = tl.load(receiver + number * stride, mask=there & inside, other=0).to(tl.int32)
    j = tl.load(sender + number * stride, mask=there & inside, other=0).to(tl.int32)
    pair = chosen(mine, before(size * size)) + i * chosen(mine, size) + j
    node = chosen(mine, before(size)) + i
    corner = (chosen(mine, tl.arange(0, GRAPHS)) * largest + i).to(tl.int64) * largest + j
    tl.store(edge + row, number, mask=inside)
    tl.store(edge_row + row, tl.where(there, pair, pairs - 1), mask=inside)
    tl.store(edge_node + row, node, mask=inside)
    tl.store(cell + row, tl.where(there, corner, -1), mask=inside)
    # Sums of ones are exact in any order.
    tl.atomic_add(degree + node, tl.zeros([ROWS], tl.float32) + 1.0, mask=there & inside)


@triton.jit
def fill_matrix(cell, edge_node, degree, matrix, edges, ROWS: tl.constexpr):
    """M_ij = Σ 1/d_i over the edges (i, j): parallel ones add the same number."""
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    place = tl.load(cell + row, mask=row < edges, other=-1)
    node = tl.load(edge_node + row, mask=place >= 0, other=0)
    share = 1.0 / tl.load(degree + node, mask=place >= 0, other=1.0)
    tl.atomic_add(matrix + place, share, mask=place >= 0)


@triton.jit
def place_pairs(
    node_ptr, numbers, graphs, receiver, sender, transposed, row_weight, nodes, pairs, ROWS: tl.constexpr,
    GRAPHS: tl.constexpr,
):  # fmt: skip
    """What belongs to pairs."""
    _, size = extents(node_ptr, numbers, graphs, GRAPHS)
    pair_first = before(size * size)
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    mine = owners(row, pair_first, size * size)
    there, inside = row < tl.sum(size * size, axis=0), row < pairs
    node_start, length, begin = chosen(mine, before(size)), chosen(mine, size), chosen(mine, pair_first)
    i = (row - begin) // tl.maximum(length, 1)
    j = row - begin - i * length
    tl.store(receiver + row, tl.where(there, node_start + i, nodes - 1), mask=inside)
    tl.store(sender + row, tl.where(there, node_start + j, nodes - 1), mask=inside)
    tl.store(transposed + row, tl.where(there, begin + j * length + i, row), mask=inside)
    tl.store(row_weight + row, there.to(tl.float32), mask=inside)


def members(store: Edges, numbers: Tensor, capacity: Capacity) -> Members:
    """See `naive`; floating values are float32."""
    numbers = numbers.contiguous()
    found = _allocated(capacity, numbers.device)
    graphs, nodes, pairs = capacity.graphs, capacity.nodes, capacity.pairs
    tile = {"ROWS": ROWS, "GRAPHS": power_of_two(graphs)}
    place_nodes[(-(-(nodes + 1) // ROWS),)](
        store.node_ptr, numbers, graphs, *found.nodes[:3], found.nodes.real.view(torch.uint8), found.sizes,
        found.pair_start, found.filled, found.rowptr, found.support_size, found.diagonal, nodes, pairs, **tile,
    )  # fmt: skip
    _place_edges(store, numbers, capacity, found)
    place_pairs[(-(-pairs // PAIR_ROWS),)](
        store.node_ptr, numbers, graphs, found.receiver, found.sender, found.transposed, found.row_weight, nodes, pairs,
        **{**tile, "ROWS": PAIR_ROWS},
    )  # fmt: skip
    return found


def _place_edges(store: Edges, numbers: Tensor, capacity: Capacity, found: Members) -> None:
    """Edges, degrees and the steps of walks."""
    edges = capacity.edges
    edge_node, cell = torch.empty_like(found.edge), torch.empty_like(found.edge)
    place_edges[(-(-edges // ROWS),)](
        *store, store.receiver.stride(0), numbers, capacity.graphs, found.edge, found.edge_row, edge_node,
        cell, found.degree, edges, capacity.pairs, capacity.largest, ROWS=ROWS,
        GRAPHS=power_of_two(capacity.graphs),
    )  # fmt: skip
    fill_matrix[(-(-edges // ROWS),)](cell, edge_node, found.degree, found.matrix, edges, ROWS=ROWS)


def _allocated(capacity: Capacity, device: torch.device) -> Members:
    """Uninitialised tensors, but zeros where edges are added."""
    graphs, nodes, pairs, edges = capacity.graphs, capacity.nodes, capacity.pairs, capacity.edges

    def whole(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.int64, device=device)

    def real_numbers(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=torch.float32, device=device)

    real = torch.empty(nodes, dtype=torch.uint8, device=device).view(torch.bool)
    return Members(
        nodes=Ragged(whole(nodes), whole(nodes), whole(graphs + 1), real), edge=whole(edges), edge_row=whole(edges),
        degree=real_numbers(nodes).zero_(), matrix=real_numbers(graphs, capacity.largest, capacity.largest).zero_(),
        sizes=whole(graphs), pair_start=whole(graphs), filled=whole(1), rowptr=whole(nodes + 1),
        support_size=real_numbers(nodes), diagonal=whole(nodes), receiver=whole(pairs), sender=whole(pairs),
        transposed=whole(pairs), row_weight=real_numbers(pairs),
    )  # fmt: skip
