"""The packed format: all graphs of a data set one after the other, in flat arrays.

    num_nodes, num_edges [G]     edge_index [2, E], node numbers local to each graph
    x [N, F]   edge_attr [E, Fe]   pos [N, 2]   y [G, …] or [N]     train_idx, val_idx, test_idx

One compressed file, no pickled objects, and no Python per graph when a batch is taken.

Legend: G graphs, N nodes, E edges, B graphs of a batch.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from ckgconv.checks import InputError, check_index

ZINC = Path(__file__).with_name("zinc12k.npz")


@dataclass(frozen=True)
class PackedDataset:
    """A data set in memory; tensors may live on any device."""

    node_ptr: Tensor  # [G + 1] int64
    edge_ptr: Tensor  # [G + 1] int64
    edge_index: Tensor  # [2, E] int64, local
    x: Tensor  # [N, F]
    edge_attr: Tensor | None  # [E, Fe]
    y: Tensor  # [G] or [G, T]
    splits: dict[str, Tensor]  # "train", "val", "test" → graph numbers

    @property
    def num_graphs(self) -> int:
        return self.node_ptr.shape[0] - 1

    def batch(self, graphs: Tensor) -> Data:
        """The graphs of the given numbers [B] as one PyG `Data` with a `batch` vector."""
        check_index("graphs", graphs, self.num_graphs, "graph numbers")
        nodes, node_graph = ragged(self.node_ptr, graphs)
        edges, edge_graph = ragged(self.edge_ptr, graphs)
        sizes = self.node_ptr.diff()[graphs]
        offset = (sizes.cumsum(0) - sizes)[edge_graph]
        return Data(
            x=self.x[nodes],
            edge_index=self.edge_index[:, edges] + offset,
            edge_attr=None if self.edge_attr is None else self.edge_attr[edges],
            y=self.y[graphs],
            batch=node_graph,
        )


def load_packed(path: Path) -> PackedDataset:
    """Read a packed file; integers become int64, features of other types float32."""
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: torch.from_numpy(np.ascontiguousarray(archive[name])) for name in archive.files}
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path} is not a packed data set ({error}): give a .npz file in the packed format."
        ) from error
    missing = {"num_nodes", "num_edges", "edge_index", "x", "y"} - set(arrays)
    if missing:
        raise InputError(f"{path} lacks the arrays {', '.join(sorted(missing))}: see the packed format.")
    return PackedDataset(
        node_ptr=pointer(arrays["num_nodes"]),
        edge_ptr=pointer(arrays["num_edges"]),
        edge_index=arrays["edge_index"].long(),
        x=widened(arrays["x"]),
        edge_attr=widened(arrays["edge_attr"]) if "edge_attr" in arrays else None,
        y=widened(arrays["y"]),
        splits={name: arrays[f"{name}_idx"].long() for name in ("train", "val", "test") if f"{name}_idx" in arrays},
    )


def zinc() -> PackedDataset:
    """ZINC-12k, which the package carries."""
    return load_packed(ZINC)


def ragged(pointers: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Rows pointers[g] … pointers[g + 1] - 1 of each g in `graphs` [B], and the position in `graphs` of each."""
    lengths = pointers.diff()[graphs]
    owner = torch.arange(graphs.shape[0], device=graphs.device).repeat_interleave(lengths)
    within = torch.arange(owner.shape[0], device=graphs.device) - (lengths.cumsum(0) - lengths)[owner]
    return pointers[graphs][owner] + within, owner


def pointer(counts: Tensor) -> Tensor:
    """[G] → [G + 1] running sum, starting at 0."""
    return torch.cat([counts.new_zeros(1), counts]).long().cumsum(0)


def widened(values: Tensor) -> Tensor:
    """int64 for integers, float32 for floats."""
    return values.float() if values.is_floating_point() else values.long()
