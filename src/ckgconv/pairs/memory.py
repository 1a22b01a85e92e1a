"""Whether the pairs of a batch fit into the memory of its device, asked before any of them is formed.

    bytes ≈ P (3 · 8 + 2 C s) + min(G n², 4 P) m

P pairs with three columns of indices and, while they are joined, two copies of C coordinates of s bytes; padded
matrices of m bytes a cell, those of similar graphs together (`by_size`): three copies of a walk M, or eight float64
matrices for distances and heat.
This is what the coordinates alone need. A step on them needs several times as much, which a network counts
(`nn.step_memory`) and `check_step_memory` compares with what is free.

Legend: G graphs, N nodes, n nodes of the largest graph, P = Σ n_g² pairs, C coordinate channels.
"""

import ctypes
import gc
import os
import platform
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from ckgconv.checks import InputError
from ckgconv.graphs import PackedGraphs
from ckgconv.pairs.by_size import padded_cells

# Below this bound, which N and G alone give, memory is not measured: ordinary batches never wait for their device.
SMALL = 2**31
GIGABYTE = 1e9
# How torch says that a CPU has no memory left; the error has no class of its own.
NO_MEMORY = "can't allocate memory"
# Where a container shows the control group of this process.
CONTAINER = Path("/sys/fs/cgroup")


def check_memory(graphs: PackedGraphs, channels: int, dtype: torch.dtype, per_cell: int, remedy: str) -> None:
    """Refuse graphs whose pairs cannot be stored; `per_cell`: bytes m; `remedy`: what to do."""
    per_pair = 3 * 8 + 2 * channels * dtype.itemsize
    nodes, count = graphs.num_nodes, graphs.num_graphs
    if nodes**2 * (per_pair + count * per_cell) < SMALL:
        return
    widest, pairs = torch.stack([graphs.sizes.max(), graphs.sizes.square().sum()]).tolist()
    needed = pairs * per_pair + padded_cells(count, widest, pairs) * per_cell
    free = None if needed < SMALL else free_bytes_after_trim(graphs.node_graph.device, needed)
    if free is None or needed <= free:
        return
    which = f"a graph of {nodes:,} nodes" if count == 1 else f"{count} graphs of up to {widest:,} nodes"
    raise InputError(
        f"All pairs of {which} are {pairs:,}, and their coordinates need about {needed / GIGABYTE:,.1f} GB; the device "
        f"{graphs.node_graph.device} has {free / GIGABYTE:,.1f} GB free: {remedy}"
        + (", or smaller batches." if count > 1 else ".")
    )


def check_step_memory(rows: int, needed: int, allowed: int, device: torch.device, remedy: str) -> int:
    """Refuse a step that needs more than is free; returns the bytes of the largest step allowed so far.

    Args:
        rows: of pairs.
        needed: bytes of the step.
        allowed: bytes of the largest step allowed before, which the process may still hold, and uses again.
        remedy: how to have fewer pairs.
    """
    if needed <= max(SMALL, allowed):
        return allowed
    free = free_bytes_after_trim(device, needed - allowed)
    if free is None or needed <= free + allowed:
        return needed
    kind = "A step with gradients" if torch.is_grad_enabled() else "A step"
    raise InputError(
        f"{kind} on {rows:,} pairs needs about {needed / GIGABYTE:,.1f} GB; the device {device} has "
        f"{(free + allowed) / GIGABYTE:,.1f} GB for it: {remedy}, a smaller width, or smaller batches where there are "
        f"several graphs."
    )


def count_all_pairs(x: Tensor, batch: Tensor | None) -> int:
    """Σ n² over the graphs of nodes x [N, …], or N² where that is too little to matter; nothing is checked yet."""
    nodes = x.shape[0] if x.dim() else 0
    # A step needs less than 10⁵ bytes for a pair.
    if batch is None or nodes**2 < SMALL // 10**5:
        return nodes**2
    return int(torch.unique_consecutive(batch, return_counts=True)[1].square().sum())


def free_bytes_after_trim(device: torch.device, needed: int) -> int | None:
    """`free_bytes`, after a process that keeps the pages of freed tensors has returned them where they are needed."""
    free = free_bytes(device)
    if free is None or needed <= free:
        return free
    gc.collect()
    if platform.libc_ver()[0] == "glibc":
        ctypes.CDLL(None).malloc_trim(0)
    return free_bytes(device)


def free_bytes(device: torch.device) -> int | None:
    """Memory that a computation on the device may still use; None where the system does not report it."""
    if device.type == "cuda":
        # What torch holds in reserve is free for its tensors.
        reserve = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + reserve
    if device.type != "cpu":
        return None
    known = [each for each in (_of_machine(), _of_process(), _of_container()) if each is not None]
    return min(known, default=None)


@contextmanager
def explaining_lack_of_memory(what: str = "a step") -> Iterator[None]:
    """Turn running out of memory into a sentence: estimates are low, and other programs take memory meanwhile."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError | torch.OutOfMemoryError) and NO_MEMORY not in str(error):
            raise
        raise InputError(
            f"There was not enough memory for {what}: choose a smaller training.batch_size or model.width, a support "
            f"of fewer pairs (a number of hops, 'sparse_global'), or leave out large graphs."
        ) from error


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return _physical_bytes()


def _of_process() -> int | None:
    """What `ulimit -v` leaves."""
    most = resource.getrlimit(resource.RLIMIT_AS)[0]
    if most == resource.RLIM_INFINITY:
        return None
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except OSError:
        return most
    return max(0, most - pages * resource.getpagesize())


def _of_container() -> int | None:
    """What the control group of a container leaves; the kernel ends a process that takes more."""
    try:
        most, used = (int((CONTAINER / name).read_text(encoding="ascii")) for name in ("memory.max", "memory.current"))
        statistics = (CONTAINER / "memory.stat").read_text(encoding="ascii").splitlines()
    except (OSError, ValueError):  # none, or "max": no limit
        return None
    # Cached pages of files count as used, but the kernel gives them back when memory is needed.
    idle = sum(int(line.split()[1]) for line in statistics if line.startswith("inactive_file "))
    return max(0, most - used + idle)


def _physical_bytes() -> int | None:
    """All memory of the machine, for one that does not report what is free."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
