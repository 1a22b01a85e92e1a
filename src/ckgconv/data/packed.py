"""The packed format: all graphs of a data set one after the other, in flat arrays.

    num_nodes, num_edges [G]     edge_index [2, E], node numbers local to each graph
    x [N, F]   edge_attr [E, Fe]   edge_weight [E]   pos [N, 2]   y [G], [G, T] or [N]
    graph_features [G, C], NaN where unknown
    train_idx, val_idx, test_idx, graph numbers
    target_weight [G], of each graph in the loss
    node_split [N], for node targets: 0 train, 1 val, 2 test, -1 none
    node_splits [S, N], in place of node_split: S splits of the same nodes, of which one is read

The file is one compressed .npz without pickled objects, and a batch is taken without a Python loop over its graphs.
Integers are types, floats are values; y with one row per node is a node target. Where nodes have splits of their own,
as in one large graph, a graph may be in several splits, and in each only the nodes of that split count. In memory the
arrays keep their compact dtypes; a batch converts them to int64 and float32.

Legend: G graphs, N nodes, E edges, B graphs of a batch, T targets, C features of a graph.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, check_index, require
from ckgconv.data.door import NAMES, NO_SPLIT, SPLITS, Described, check_shapes, check_values, in_numpy, signed
from ckgconv.data.npz import Header, read_npz
from ckgconv.files import write_whole
from ckgconv.graphs import entries_of, pointer

__all__ = ["NO_SPLIT", "SPLITS", "PackedDataset", "from_arrays", "join", "load_packed", "read_arrays", "save_packed"]
# Arrays that are optional.
OPTIONAL = ("edge_attr", "edge_weight", "pos", "y", "node_split", "graph_features", "target_weight")


@dataclass(frozen=True)
class PackedDataset:
    """A data set in memory; its tensors may be on any device."""

    node_ptr: Tensor  # [G + 1] int64
    edge_ptr: Tensor  # [G + 1] int64
    edge_index: Tensor  # [2, E] integers, local to each graph, sources above targets
    x: Tensor  # [N, F]
    edge_attr: Tensor | None  # [E, Fe]
    pos: Tensor | None  # [N, 2]
    y: Tensor | None  # [G], [G, T], or [N] for node targets
    train: Tensor  # [·] int64 graph numbers
    val: Tensor
    test: Tensor
    node_split: Tensor | None = None  # [N] index into SPLITS of each node, NO_SPLIT for none; None: that of its graph
    edge_weight: Tensor | None = None  # [E] ≥ 0, A_ij of each edge; None: 1
    graph_features: Tensor | None = None  # [G, C] what a head reads of each graph beside its nodes
    target_weight: Tensor | None = None  # [G] ≥ 0, of each graph in the loss; None: 1

    @property
    def num_graphs(self) -> int:
        return self.node_ptr.shape[0] - 1

    @property
    def node_targets(self) -> bool:
        """Whether y has a row per node."""
        return self.y is not None and (self.node_split is not None or self.y.shape[0] != self.num_graphs)

    def split(self, name: str) -> Tensor:
        """Graph numbers of "train", "val" or "test"."""
        require(name in SPLITS, f"There is no split {name!r}: choose one of {', '.join(SPLITS)}.")
        numbers: Tensor = getattr(self, name)
        return numbers

    def target_rows(self, name: str) -> Tensor:
        """Rows of y that count in a split: its graphs; their nodes; or, of these, the nodes in the split themselves."""
        graphs = self.split(name)
        if not self.node_targets:
            return graphs
        nodes, _ = ragged(self.node_ptr, graphs)
        return nodes if self.node_split is None else nodes[self.node_split[nodes] == SPLITS.index(name)]

    def limited(self, limit: int | None) -> "PackedDataset":
        """The first `limit` graphs of each split, and no others."""
        if limit is None:
            return self
        require(limit > 0, f"data.limit is {limit}: give at least 1 graph.")
        return self.subset({name: self.split(name)[:limit] for name in SPLITS})

    def subset(self, splits: dict[str, Tensor]) -> "PackedDataset":
        """The graphs of the given splits, renumbered split by split; a graph in several splits is stored once."""
        graphs, numbers = in_order(torch.cat([splits[name] for name in SPLITS]))
        nodes, _ = ragged(self.node_ptr, graphs)
        edges, _ = ragged(self.edge_ptr, graphs)
        train, val, test = numbers.split([len(splits[name]) for name in SPLITS])
        return PackedDataset(
            node_ptr=pointer(self.node_ptr.diff()[graphs]),
            edge_ptr=pointer(self.edge_ptr.diff()[graphs]),
            edge_index=self.edge_index[:, edges],
            x=self.x[nodes],
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            pos=None if self.pos is None else self.pos[nodes],
            y=None if self.y is None else self.y[nodes if self.node_targets else graphs],
            train=train,
            val=val,
            test=test,
            node_split=None if self.node_split is None else self.node_split[nodes],
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            graph_features=None if self.graph_features is None else self.graph_features[graphs],
            target_weight=None if self.target_weight is None else self.target_weight[graphs],
        )

    def to(self, device: torch.device) -> "PackedDataset":
        tensors = {field.name: getattr(self, field.name) for field in fields(self)}
        moved: Any = {name: value if value is None else value.to(device) for name, value in tensors.items()}
        return PackedDataset(**moved)

    def batch(self, graphs: Tensor) -> Data:
        """The graphs of the given numbers [B] as one PyG `Data` with a `batch` vector."""
        check_index("graphs", graphs, self.num_graphs, "graph numbers")
        nodes, node_graph = ragged(self.node_ptr, graphs)
        edges, edge_graph = ragged(self.edge_ptr, graphs)
        sizes = self.node_ptr.diff()[graphs]
        offset = (sizes.cumsum(0) - sizes)[edge_graph]
        target = None if self.y is None else self.y[nodes if self.node_targets else graphs]
        return Data(
            x=widened(self.x[nodes]),
            edge_index=self.edge_index[:, edges].long() + offset,
            edge_attr=None if self.edge_attr is None else widened(self.edge_attr[edges]),
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges].float(),
            pos=None if self.pos is None else widened(self.pos[nodes]),
            y=None if target is None else widened(target),
            node_split=None if self.node_split is None else widened(self.node_split[nodes]),
            graph_features=None if self.graph_features is None else self.graph_features[graphs].float(),
            target_weight=None if self.target_weight is None else self.target_weight[graphs].float(),
            batch=node_graph,
            ptr=pointer(sizes),
            num_graphs=graphs.shape[0],  # as a PyG `Batch` has it: models of one's own pool by it
        )


def load_packed(path: Path, split_number: int = 0) -> PackedDataset:
    """Read a packed file; `split_number` chooses among several splits of its nodes."""

    def check(headers: Mapping[str, Described]) -> None:
        chosen = _row_of_splits(headers.get("node_splits"), split_number)
        check_shapes(headers if chosen is None else {**headers, "node_split": chosen})

    arrays = read_npz(path, (*NAMES, "node_splits"), check)
    splits = arrays.pop("node_splits", None)
    if splits is not None:
        arrays["node_split"] = splits[split_number]
    try:
        arrays = {name: signed(name, array) for name, array in arrays.items()}
        check_values(arrays)
    except InputError as error:
        raise InputError(f"{path} cannot be used. {error}") from error
    return _assembled({name: torch.from_numpy(array) for name, array in arrays.items()})


def _row_of_splits(splits: Described | None, number: int) -> Header | None:
    """The header of one of several splits [S, N]; None where there is only one."""
    shape = (1,) if splits is None else splits.shape
    require(splits is None or len(shape) == 2, f"node_splits has shape {list(shape)}: give one row of nodes per split.")
    last = shape[0] - 1
    require(0 <= number <= last, f"data.split_number is {number}, but the file has splits 0 … {last} only.")
    return None if splits is None else Header(shape[1:], splits.dtype)


def read_arrays(path: Path, names: Iterable[str] = NAMES) -> dict[str, Tensor]:
    """The arrays of these names that a .npz file has, not yet compared with each other: `from_arrays` does that."""
    return {name: torch.from_numpy(signed(name, array)) for name, array in read_npz(path, names).items()}


def from_arrays(arrays: Mapping[str, Tensor]) -> PackedDataset:
    """A data set from the arrays of the packed format, all of which are checked.

    Without split arrays every graph is in "test", or in every split where the nodes have their own.
    """
    checked = {name: signed(name, in_numpy(name, value)) for name, value in arrays.items() if name in NAMES}
    check_shapes(checked)
    check_values(checked)
    return _assembled(arrays)


def _assembled(arrays: Mapping[str, Tensor]) -> PackedDataset:
    """A data set from arrays that were checked."""
    empty = torch.zeros(0, dtype=torch.int64)
    splits = {name: arrays.get(f"{name}_idx", empty).long() for name in SPLITS}
    node_split = arrays.get("node_split")
    if not any(len(numbers) for numbers in splits.values()):
        names = ("test",) if node_split is None else SPLITS
        splits |= dict.fromkeys(names, torch.arange(len(arrays["num_nodes"])))
    return PackedDataset(
        node_ptr=pointer(arrays["num_nodes"]),
        edge_ptr=pointer(arrays["num_edges"]),
        edge_index=arrays["edge_index"],
        x=arrays["x"],
        edge_attr=arrays.get("edge_attr"),
        pos=arrays.get("pos"),
        y=arrays.get("y"),
        node_split=node_split,
        edge_weight=arrays.get("edge_weight"),
        graph_features=arrays.get("graph_features"),
        target_weight=arrays.get("target_weight"),
        **splits,
    )


def save_packed(dataset: PackedDataset, path: Path) -> None:
    """Write a packed file atomically; integers are stored in the smallest dtype that holds them."""
    arrays: dict[str, NDArray[np.generic]] = {
        "num_nodes": dataset.node_ptr.diff().numpy(),
        "num_edges": dataset.edge_ptr.diff().numpy(),
        **{f"{name}_idx": dataset.split(name).numpy() for name in SPLITS},
    }
    for name in ("edge_index", *OPTIONAL, "x"):
        value = getattr(dataset, name)
        if value is not None:
            arrays[name] = value.numpy()
    small = {name: narrowed(array) for name, array in arrays.items()}

    def write(part: Path) -> None:
        with part.open("wb") as file:
            np.savez_compressed(file, **small)  # type: ignore[arg-type]

    write_whole(Path(path), write)


def join(parts: dict[str, PackedDataset]) -> PackedDataset:
    """Join data sets, each of which becomes the split of its name ("train", "val", "test")."""
    counts = {name: part.num_graphs for name, part in parts.items()}
    starts = dict(zip(counts, np.cumsum([0, *counts.values()]).tolist(), strict=False))
    splits = {f"{name}_idx": torch.arange(counts[name]) + starts[name] for name in parts}
    arrays = {
        "num_nodes": torch.cat([part.node_ptr.diff() for part in parts.values()]),
        "num_edges": torch.cat([part.edge_ptr.diff() for part in parts.values()]),
        "edge_index": torch.cat([part.edge_index for part in parts.values()], dim=1),
    }
    for name in ("x", *OPTIONAL):
        values = {part: value for part in parts if (value := getattr(parts[part], name)) is not None}
        require(
            len(values) in (0, len(parts)), f"Only {' and '.join(values)} has {name}: give it in all parts or in none."
        )
        if values:
            _check_alike(name, values)
            arrays[name] = torch.cat(list(values.values()))
    per_node = {name: part.node_targets for name, part in parts.items()}
    require(len(set(per_node.values())) == 1, f"y has a row per node in some parts only ({per_node}): give the same.")
    return _assembled({**arrays, **splits})


def _check_alike(name: str, values: dict[str, Tensor]) -> None:
    """Refuse parts whose values are of different kinds or widths."""
    forms = {part: (value.is_floating_point(), list(value.shape[1:])) for part, value in values.items()}
    first, form = next(iter(forms.items()))
    for part, other in forms.items():
        require(
            other == form,
            f"{name} has {'floats' if other[0] else 'integers'} and columns {other[1]} in {part}, but "
            f"{'floats' if form[0] else 'integers'} and columns {form[1]} in {first}: give the same in all parts.",
        )


def in_order(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct numbers in the order of their first occurrence, and for each number its index among them."""
    values, inverse = torch.unique(numbers, return_inverse=True)
    index = torch.arange(len(numbers), device=numbers.device)
    first = torch.full_like(values, len(numbers)).scatter_reduce(0, inverse, index, "amin")
    order = first.argsort()
    return values[order], order.argsort()[inverse]


def ragged(pointers: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Rows pointers[g] … pointers[g + 1] - 1 of each g in `graphs` [B], and the position in `graphs` of each."""
    owner, within = entries_of(pointers.diff()[graphs])
    return pointers[graphs][owner] + within, owner


def widened(values: Tensor) -> Tensor:
    """int64 for integers, float32 for floats."""
    return values.float() if values.is_floating_point() else values.long()


def narrowed(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Integers in the smallest dtype that holds them."""
    if not np.issubdtype(array.dtype, np.integer) or array.size == 0:
        return array
    found = np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max()))
    return array.astype(found) if np.issubdtype(found, np.integer) else array  # no integer is both negative and uint64
