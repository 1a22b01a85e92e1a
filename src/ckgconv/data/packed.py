"""The packed format: all graphs of a data set one after the other, in flat arrays.

    num_nodes, num_edges [G]     edge_index [2, E], node numbers local to each graph
    x [N, F]   edge_attr [E, Fe]   edge_weight [E]   pos [N, 2]   y [G], [G, T] or [N]
    train_idx, val_idx, test_idx, graph numbers
    node_split [N], for node targets: 0 train, 1 val, 2 test, -1 none
    node_splits [S, N], in place of node_split: S splits of the same nodes, of which one is read

The file is one compressed .npz without pickled objects, and a batch is taken without a Python loop over its graphs.
Integers are types, floats are values; y with one row per node is a node target. Where nodes have splits of their own,
as in one large graph, a graph may be in several splits, and in each only the nodes of that split count. In memory the
arrays keep their compact dtypes; a batch converts them to int64 and float32.

Legend: G graphs, N nodes, E edges, B graphs of a batch, T targets.
"""

import zipfile
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, check_index, check_shape, check_weights, require
from ckgconv.files import write_whole

SPLITS = ("train", "val", "test")
# `node_split` of a node that counts in none of them.
NO_SPLIT = -1
# Arrays that a data set may lack.
OPTIONAL = ("edge_attr", "edge_weight", "pos", "y", "node_split")


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
            batch=node_graph,
            ptr=pointer(sizes),
            num_graphs=graphs.shape[0],  # as a PyG `Batch` has it: models of one's own pool by it
        )


def load_packed(path: Path, split_number: int = 0) -> PackedDataset:
    """Read a packed file; `split_number` chooses among several splits of its nodes."""
    arrays = read_arrays(path)
    missing = {"num_nodes", "num_edges", "edge_index", "x"} - set(arrays)
    require(not missing, f"{path} lacks the arrays {', '.join(sorted(missing))}: add them, or write it by save_packed.")
    splits = arrays.pop("node_splits", None)
    count = 1 if splits is None else len(splits)
    require(
        0 <= split_number < count, f"data.split_number is {split_number}, but {path} has splits 0 … {count - 1} only."
    )
    return from_arrays(arrays if splits is None else {**arrays, "node_split": splits[split_number]})


def read_arrays(path: Path) -> dict[str, Tensor]:
    """All arrays of a .npz file; pickled objects are refused."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: torch.from_numpy(np.ascontiguousarray(archive[name])) for name in archive.files}
    except (OSError, ValueError, TypeError, AttributeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{path} is not a packed data set ({type(error).__name__}): give a .npz file in the packed format."
        ) from error


def from_arrays(arrays: dict[str, Tensor]) -> PackedDataset:
    """A data set from the arrays of the packed format.

    Without split arrays every graph is in "test", or in every split where the nodes have their own.
    """
    empty = torch.zeros(0, dtype=torch.int64)
    splits = {name: arrays.get(f"{name}_idx", empty).long() for name in SPLITS}
    node_split = arrays.get("node_split")
    if node_split is not None:
        check_node_split(node_split, len(arrays["x"]), arrays.get("y"))
    if "edge_weight" in arrays:
        check_shape("edge_weight", arrays["edge_weight"], (arrays["edge_index"].shape[1],), "give one weight per edge.")
        check_weights("edge_weight", arrays["edge_weight"])
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
        **splits,
    )


def check_node_split(node_split: Tensor, nodes: int, y: Tensor | None) -> None:
    """Refuse a node_split that is not one number of a split per node, or without one target per node."""
    shape = list(node_split.shape)
    require(shape == [nodes], f"node_split has shape {shape}, expected [{nodes}]: give one number per node.")
    valid = [NO_SPLIT, *range(len(SPLITS))]
    wrong = node_split[~torch.isin(node_split.long(), torch.tensor(valid, device=node_split.device))]
    require(
        not len(wrong) and not node_split.is_floating_point(),
        f"node_split contains {''.join(map(str, wrong[:1].tolist())) or 'fractions'}: give 0 for train, 1 for val, "
        f"2 for test, {NO_SPLIT} for none, as integers.",
    )
    rows = None if y is None else y.shape[0]
    require(
        rows == nodes,
        f"node_split splits {nodes} nodes, but y has {'no' if rows is None else rows} rows: give one target per node.",
    )


def save_packed(dataset: PackedDataset, path: Path) -> None:
    """Write a packed file, whole or not at all; integers are stored in the smallest dtype that holds them."""
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
            arrays[name] = torch.cat(list(values.values()))
    return from_arrays({**arrays, **splits})


def in_order(numbers: Tensor) -> tuple[Tensor, Tensor]:
    """The distinct numbers in the order of their first occurrence, and for each number its index among them."""
    values, inverse = torch.unique(numbers, return_inverse=True)
    index = torch.arange(len(numbers), device=numbers.device)
    first = torch.full_like(values, len(numbers)).scatter_reduce(0, inverse, index, "amin")
    order = first.argsort()
    return values[order], order.argsort()[inverse]


def ragged(pointers: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Rows pointers[g] … pointers[g + 1] - 1 of each g in `graphs` [B], and the position in `graphs` of each."""
    lengths = pointers.diff()[graphs]
    owner = torch.arange(graphs.shape[0], device=graphs.device).repeat_interleave(lengths)
    within = torch.arange(owner.shape[0], device=graphs.device) - (lengths.cumsum(0) - lengths)[owner]
    return pointers[graphs][owner] + within, owner


def pointer(counts: Tensor) -> Tensor:
    """Counts [G] → cumulative sums [G + 1], starting at 0."""
    return torch.cat([counts.new_zeros(1), counts]).long().cumsum(0)


def widened(values: Tensor) -> Tensor:
    """int64 for integers, float32 for floats."""
    return values.float() if values.is_floating_point() else values.long()


def narrowed(array: NDArray[np.generic]) -> NDArray[np.generic]:
    """Integers in the smallest dtype that holds them."""
    if not np.issubdtype(array.dtype, np.integer) or array.size == 0:
        return array
    return array.astype(np.result_type(np.min_scalar_type(array.min()), np.min_scalar_type(array.max())))
