"""Graphs that tests draw: random ones of any kind, and batches of them."""

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch_geometric.data import Batch, Data

from ckgconv.graphs import PackedGraphs, pack


def random_edges(nodes: int, edges: int, seed: int, directed: bool = False) -> Tensor:
    """[2, ·] with self loops, duplicates and isolated nodes as they fall."""
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(nodes, (2, edges), generator=generator)
    return index if directed else torch.cat([index, index.flip(0)], dim=1)


def packed(*graphs: tuple[int, Tensor], weights: Tensor | None = None) -> PackedGraphs:
    """Several (nodes, edge_index) as one."""
    sizes = torch.tensor([nodes for nodes, _ in graphs])
    offsets = sizes.cumsum(0) - sizes
    edges = [index + offset for (_, index), offset in zip(graphs, offsets, strict=True)]
    batch = torch.arange(len(graphs)).repeat_interleave(sizes)
    return pack(torch.cat(edges, dim=1), batch, weights)


def molecule(nodes: int, seed: int, dtype: torch.dtype = torch.float64) -> Data:
    """A connected random graph with the attributes of ZINC."""
    generator = torch.Generator().manual_seed(seed)
    parents = [int(torch.randint(child, (1,), generator=generator)) for child in range(1, nodes)]
    tree = torch.tensor([list(range(1, nodes)), parents], dtype=torch.int64).reshape(2, -1)
    extra = torch.randint(nodes, (2, nodes // 4), generator=generator)
    extra = extra[:, extra[0] != extra[1]]
    one_way = torch.unique(torch.cat([tree, extra], dim=1).sort(dim=0).values, dim=1)
    bonds = torch.randint(1, 4, (one_way.shape[1], 1), generator=generator)
    return Data(
        x=torch.randint(21, (nodes, 1), generator=generator),
        edge_index=torch.cat([one_way, one_way.flip(0)], dim=1),
        edge_attr=torch.cat([bonds, bonds]),
        y=torch.randn(1, generator=generator, dtype=dtype),
    )


def molecules(*sizes: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Batch:
    return Batch.from_data_list([molecule(size, seed + place, dtype) for place, size in enumerate(sizes)])


@st.composite
def edge_lists(draw: st.DrawFn, max_nodes: int = 9) -> tuple[int, Tensor]:
    """(nodes, edge_index): any directed multigraph with self loops, down to one node and no edge."""
    nodes = draw(st.integers(1, max_nodes))
    node = st.integers(0, nodes - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=3 * nodes))
    return nodes, torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
