"""Whether all pairs of a batch fit into the memory of its device, asked before any of them is formed.

    bytes ≈ P (3 · 8 + 2 C s) + G n² m

P pairs with three columns of indices and, while they are joined, two copies of C coordinates of s bytes; G padded
matrices of n² cells with m bytes each: three copies of a walk M, or eight float64 matrices for distances and heat.
This is what the coordinates alone need; a network that trains on them needs several times as much.

Legend: G graphs, N nodes, n nodes of the largest graph, P = Σ n_g² pairs, C coordinate channels.
"""

import os
from pathlib import Path

import torch

from ckgconv.checks import InputError
from ckgconv.graphs import PackedGraphs

# Bytes below which no memory is measured: a bound from N and G, so that ordinary batches never wait for their device.
SMALL = 2**31
GIGABYTE = 1e9


def check_memory(graphs: PackedGraphs, channels: int, dtype: torch.dtype, per_cell: int, remedy: str) -> None:
    """Refuse graphs whose pairs cannot be stored; `per_cell`: bytes m; `remedy`: what to do."""
    per_pair = 3 * 8 + 2 * channels * dtype.itemsize
    nodes, count = graphs.num_nodes, graphs.num_graphs
    if nodes**2 * (per_pair + count * per_cell) < SMALL:
        return
    widest, pairs = torch.stack([graphs.sizes.max(), graphs.sizes.square().sum()]).tolist()
    needed = pairs * per_pair + count * widest**2 * per_cell
    free = None if needed < SMALL else free_bytes(graphs.node_graph.device)
    if free is None or needed <= free:
        return
    which = f"a graph of {nodes:,} nodes" if count == 1 else f"{count} graphs of up to {widest:,} nodes"
    raise InputError(
        f"All pairs of {which} are {pairs:,}, and their coordinates need about {needed / GIGABYTE:,.1f} GB; the device "
        f"{graphs.node_graph.device} has {free / GIGABYTE:,.1f} GB free: {remedy}"
        + (", or smaller batches." if count > 1 else ".")
    )


def free_bytes(device: torch.device) -> int | None:
    """Memory that a computation on the device may still use; None where the system does not report it."""
    if device.type == "cuda":
        # What torch holds in reserve is free for its tensors.
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserve
    if device.type != "cpu":
        return None
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _physical_bytes()


def _physical_bytes() -> int | None:
    """All memory of the machine, where it does not report what is free."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
