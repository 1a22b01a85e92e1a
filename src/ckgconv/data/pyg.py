"""Graphs in Python → the packed format: PyG data sets, lists of `Data`, and graphs with masks of their nodes."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import check_shape, require
from ckgconv.data.packed import NO_SPLIT, SPLITS, PackedDataset, check_node_split, from_arrays, join

# What the transforms of `ckgconv.pe` write, and a support of the user's own.
NOT_PACKED = ("pair_index", "pair_encoding", "node_encoding", "support_index")


def from_pyg(graphs: Iterable[Data]) -> PackedDataset:
    """Pack a PyG data set or a list of `Data` with x and edge_index; all graphs are in the split "test".

    `edge_attr`, `edge_weight`, `pos` and `y` are packed where every graph has them.
    """
    parts = list(graphs)
    require(len(parts) > 0, "The data set has no graph: give at least one.")
    for number, graph in enumerate(parts):
        _check_graph(graph, number)

    arrays = {
        "num_nodes": torch.tensor([graph.num_nodes for graph in parts]),
        "num_edges": torch.tensor([graph.num_edges for graph in parts]),
        "edge_index": torch.cat([graph.edge_index for graph in parts], dim=1),
    }
    for name in ("x", "edge_attr", "edge_weight", "pos", "y"):
        value = _joined(parts, name)
        if value is not None:
            arrays[name] = value.unsqueeze(-1) if name in ("x", "edge_attr") and value.dim() == 1 else value
    return from_arrays(arrays)


def _check_graph(graph: Data, number: int) -> None:
    """Refuse a graph without nodes or edges to pack, or with what a packed data set cannot hold."""
    for name in ("x", "edge_index"):
        require(getattr(graph, name, None) is not None, f"Graph {number} has no {name}: every graph needs one.")
    for name in NOT_PACKED:
        require(
            getattr(graph, name, None) is None,
            f"Graph {number} has {name}, which a packed data set does not hold: leave out the transform, since the "
            f"recipe's encoding and support are computed in training, or train a model in a loop of your own.",
        )


def _joined(graphs: list[Data], name: str) -> Tensor | None:
    """An attribute of all graphs, one after the other; None where no graph has it."""
    values: list[Any] = [getattr(graph, name, None) for graph in graphs]
    lacking = [number for number, value in enumerate(values) if value is None]
    if len(lacking) == len(graphs):
        return None
    require(
        not lacking,
        f"Graph {''.join(map(str, lacking[:1]))} has no {name}, but others have: give it to every graph or to none.",
    )
    return torch.cat([value if value.dim() else value.view(1) for value in values])


def from_pyg_splits(train: Iterable[Data], val: Iterable[Data], test: Iterable[Data]) -> PackedDataset:
    """Pack three PyG data sets as the splits of one."""
    return join({"train": from_pyg(train), "val": from_pyg(val), "test": from_pyg(test)})


def from_pyg_masks(*graphs: Data) -> PackedDataset:
    """Pack graphs for node classification or regression: each `Data` has a target per node and three masks.

    Args:
        graphs: `x`, `edge_index`, `y` [N] or [N, T], and boolean `train_mask`, `val_mask`, `test_mask` [N], as PyG's
            data sets of one large graph have them; a node outside all three is part of the input, but never counts.
    """
    packed = from_pyg(graphs)
    node_split = torch.cat([_split_of_masks(graph, number) for number, graph in enumerate(graphs)])
    check_node_split(node_split, len(packed.x), packed.y)
    assert packed.y is not None
    y = packed.y.squeeze(-1) if packed.y.dim() == 2 else packed.y
    every = torch.arange(packed.num_graphs)
    return replace(packed, y=y, node_split=node_split, train=every, val=every, test=every)


def _split_of_masks(graph: Data, number: int) -> Tensor:
    """[N] int8 index into SPLITS of each node."""
    split = torch.full((int(graph.num_nodes),), NO_SPLIT, dtype=torch.int8)
    for index, name in enumerate(SPLITS):
        mask = getattr(graph, f"{name}_mask", None)
        require(mask is not None, f"Graph {number} has no {name}_mask: give train_mask, val_mask and test_mask.")
        assert isinstance(mask, Tensor)
        check_shape(f"{name}_mask", mask, (len(split),), "give one value per node; of several splits choose a column.")
        chosen = mask.bool().cpu()
        require(
            not bool((chosen & (split != NO_SPLIT)).any()),
            f"Graph {number} has nodes in {name}_mask and in another mask: put each node into one mask only.",
        )
        split[chosen] = index
    return split
