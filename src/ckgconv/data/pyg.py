"""The door of graphs in Python → the packed format: PyG data sets, lists of `Data`, graphs with masks of their nodes.

Graphs are checked one by one: sizes that agree only in total would give attributes to the wrong graph.

Legend: G graphs; n nodes, e edges of one graph.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, check_shape, require
from ckgconv.data.door import in_numpy, signed
from ckgconv.data.packed import NO_SPLIT, SPLITS, PackedDataset, from_arrays, join

# What the transforms of `ckgconv.pe` write, and a support of the user's own.
NOT_PACKED = ("pair_index", "pair_encoding", "node_encoding", "support_index")
OPTIONAL = ("edge_attr", "edge_weight", "pos", "y")
UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
COLUMNS = ("x", "edge_attr")  # where one dimension is read as one column


def from_pyg(graphs: Iterable[Data]) -> PackedDataset:
    """Pack a PyG data set or a list of `Data` with x and edge_index; all graphs are in the split "test".

    `edge_attr`, `edge_weight`, `pos` and `y` are packed where every graph has them. y has one row per graph, or one per
    node.
    """
    given = isinstance(graphs, Iterable) and not isinstance(graphs, Data | Tensor)
    require(given, f"graphs is a {type(graphs).__name__}: give a data set or a list of graphs.")
    parts = [_tensors(graph, number) for number, graph in enumerate(graphs)]
    require(len(parts) > 0, "The data set has no graph: give at least one.")
    arrays = {
        "num_nodes": torch.tensor([len(part["x"]) for part in parts]),
        "num_edges": torch.tensor([part["edge_index"].shape[1] for part in parts]),
        "edge_index": torch.cat([part["edge_index"] for part in parts], dim=1),
        "x": _joined(parts, "x"),
    }
    for name in OPTIONAL:
        lacking = [number for number, part in enumerate(parts) if name not in part]
        require(
            len(lacking) in (0, len(parts)),
            f"Graph {lacking[0] if lacking else 0} has no {name}, but others have: give it to every graph or to none.",
        )
        if not lacking:
            arrays[name] = _joined(parts, name)
    if "y" in arrays:
        _check_targets(parts)
    return from_arrays(arrays)


def _tensors(graph: object, number: int) -> dict[str, Tensor]:
    """The attributes of a graph that a packed data set holds, checked one against the other."""
    if not isinstance(graph, Data):
        raise InputError(f"Graph {number} is a {type(graph).__name__}: give torch_geometric.data.Data.")
    for name in ("x", "edge_index"):
        require(getattr(graph, name, None) is not None, f"Graph {number} has no {name}: every graph needs one.")
    for name in NOT_PACKED:
        require(
            getattr(graph, name, None) is None,
            f"Graph {number} has {name}, which a packed data set does not hold: leave out the transform, since the "
            f"recipe's encoding and support are computed in training, or train a model in a loop of your own.",
        )
    names = [name for name in ("x", "edge_index", *OPTIONAL) if getattr(graph, name, None) is not None]
    found = {name: _tensor(getattr(graph, name), name, number) for name in names}
    _check_rows(graph, found, number)
    return found


def _tensor(value: object, name: str, number: int) -> Tensor:
    what = f"{name} of graph {number}"
    array = signed(what, in_numpy(what, value))  # graphs may have other widths of integers, which torch has to join
    whole = name != "edge_index" or array.dtype.kind in "iu"
    require(whole, f"{what} has dtype {array.dtype}: give whole numbers, stored as integers.")
    assert isinstance(value, Tensor)
    value = torch.from_numpy(array) if value.dtype in UNSIGNED else value.detach().cpu()
    if not value.dim():
        value = value.view(1)
    return value.unsqueeze(-1) if name in COLUMNS and value.dim() == 1 else value


def _check_rows(graph: Data, found: dict[str, Tensor], number: int) -> None:
    name = f"of graph {number}"
    check_shape(f"edge_index {name}", found["edge_index"], (2, None), "give edges as two rows, sources above targets.")
    check_shape(f"x {name}", found["x"], (None, None), "give a row of attributes for each node.")
    nodes, edges = len(found["x"]), found["edge_index"].shape[1]
    stated = graph.to_dict().get("num_nodes", nodes)  # PyG guesses it from other attributes
    whole = isinstance(stated, int)
    shown = stated if whole else f"a {type(stated).__name__}"
    require(
        whole and stated == nodes, f"x {name} has {nodes} rows, but its num_nodes is {shown}: give one row per node."
    )
    for attribute, rows, dimensions in (("edge_attr", edges, 2), ("edge_weight", edges, 1), ("pos", nodes, 2)):
        if attribute in found:
            wanted = (rows, *[None] * (dimensions - 1))
            what = "node" if attribute == "pos" else "edge"
            check_shape(f"{attribute} {name}", found[attribute], wanted, f"give one row per {what}.")


def _check_targets(parts: list[dict[str, Tensor]]) -> None:
    """Refuse targets that have neither one row per graph nor one per node, in all graphs alike."""
    rows = [len(part["y"]) for part in parts]
    nodes = [len(part["x"]) for part in parts]
    if all(row == 1 for row in rows):
        return
    for number, (row, count) in enumerate(zip(rows, nodes, strict=True)):
        require(
            row == count,
            f"y of graph {number} has {row} rows for {count} nodes: give one row per node in every graph, or one row "
            f"[1, T] per graph.",
        )
    # The packed format tells the two apart by the number of rows.
    require(
        sum(rows) != len(rows), "y has a row per node, and there are as many nodes as graphs: leave out empty graphs."
    )


def _joined(parts: list[dict[str, Tensor]], name: str) -> Tensor:
    """An attribute of all graphs, one after the other."""
    first = parts[0][name]
    for number, part in enumerate(parts):
        value = part[name]
        alike = value.shape[1:] == first.shape[1:] and value.is_floating_point() == first.is_floating_point()
        require(
            alike,
            f"{name} of graph {number} has shape {list(value.shape)} and dtype {value.dtype}, but that of graph 0 "
            f"{list(first.shape)} and {first.dtype}: give the same columns, of integers or of floats, to every graph.",
        )
    return torch.cat([part[name] for part in parts])


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
    rows = "no" if packed.y is None else len(packed.y)
    require(
        rows == len(packed.x),
        f"The masks split {len(packed.x)} nodes, but y has {rows} rows: give one target per node.",
    )
    assert packed.y is not None
    y = packed.y.squeeze(-1) if packed.y.dim() == 2 else packed.y
    every = torch.arange(packed.num_graphs)
    return replace(packed, y=y, node_split=node_split, train=every, val=every, test=every)


def _split_of_masks(graph: Data, number: int) -> Tensor:
    """[N] int8 index into SPLITS of each node."""
    assert isinstance(graph.x, Tensor)
    split = torch.full((len(graph.x),), NO_SPLIT, dtype=torch.int8)
    for index, name in enumerate(SPLITS):
        mask = getattr(graph, f"{name}_mask", None)
        require(mask is not None, f"Graph {number} has no {name}_mask: give train_mask, val_mask and test_mask.")
        assert mask is not None
        check_shape(f"{name}_mask", mask, (len(split),), "give one value per node; of several splits choose a column.")
        require(mask.dtype == torch.bool, f"{name}_mask has dtype {mask.dtype}: convert it with .bool().")
        chosen = mask.cpu()
        require(
            not bool((chosen & (split != NO_SPLIT)).any()),
            f"Graph {number} has nodes in {name}_mask and in another mask: put each node into one mask only.",
        )
        split[chosen] = index
    return split
