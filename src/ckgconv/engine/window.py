"""Windows: batches of a data set that does not fit on the device, copied from host memory one at a time.

A window is a packed data set of one batch, of fixed shapes. It is filled on the stream of the steps, before the step
that assembles this batch, so a captured step reads it as it would read the whole data set.

Legend: B graphs, N nodes, E edges: capacities, not counts.
"""

from dataclasses import fields, replace

import torch
from torch import Tensor

from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.data import PackedDataset

# Share of the device's free memory that a data set may take.
SHARE = 0.5


def fits(data: PackedDataset, device: torch.device) -> bool:
    """Whether a whole data set fits on the device."""
    if device.type != "cuda":
        return True
    values = (getattr(data, field.name) for field in fields(data))
    size = sum(value.nbytes for value in values if value is not None)
    return size <= SHARE * torch.cuda.mem_get_info(device)[0]


class Window:
    """One batch of a data set in host memory, on a device.

    Args:
        data: a data set in host memory.
        capacity: of every batch.
        device: of the window.
    """

    def __init__(self, data: PackedDataset, capacity: Capacity, device: torch.device) -> None:
        self.data = data
        self.rows = {
            "node_ptr": capacity.graphs + 1,
            "edge_ptr": capacity.graphs + 1,
            "x": capacity.nodes,
            "pos": capacity.nodes,
            "node_split": capacity.nodes,
            "edge_attr": capacity.edges,
            "edge_weight": capacity.edges,
            "graph_features": capacity.graphs,
            "target_weight": capacity.graphs,
            "y": capacity.nodes if data.node_targets else capacity.graphs,
        }
        buffers = {
            name: torch.zeros(rows, *value.shape[1:], dtype=value.dtype, device=device)
            for name, rows in self.rows.items()
            if (value := getattr(data, name)) is not None
        }
        edges = torch.zeros(2, capacity.edges, dtype=data.edge_index.dtype, device=device)
        self.store = replace(data, edge_index=edges, **buffers)

    def load(self, numbers: Tensor) -> None:
        """Fill the window with the graphs of the given numbers [B] on the host; -1 at the end for none."""
        none = numbers[:0]
        part = self.data.subset({"train": numbers[numbers >= 0], "val": none, "test": none})
        self.store.edge_index[:, : part.edge_index.shape[1]].copy_(part.edge_index, non_blocking=True)
        for name in self.rows:
            value, buffer = getattr(part, name), getattr(self.store, name)
            if value is None:
                continue
            buffer[: value.shape[0]].copy_(value, non_blocking=True)
            if name.endswith("_ptr"):  # absent graphs are empty
                buffer[value.shape[0] :] = value[-1].item()
