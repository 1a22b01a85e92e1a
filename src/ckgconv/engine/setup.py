"""Device, precision and processes of a run, through Lightning Fabric."""

import atexit
import logging
import os
import warnings
import weakref
from datetime import timedelta
from functools import cache
from typing import ClassVar

import torch
import torch.distributed as dist
from lightning.fabric import Fabric
from lightning.fabric.plugins.environments.lightning import LightningEnvironment
from lightning.fabric.strategies.ddp import DDPStrategy
from torch.nn.parallel import DistributedDataParallel

from ckgconv.backends.cpu.memory import keep_freed_pages
from ckgconv.checks import check_choice, require

# Name of the option → name in Fabric. tf32 is float32 whose products use the shorter mantissa of the tensor cores.
PRECISIONS = {"32": "32-true", "tf32": "32-true", "bf16": "bf16-mixed", "64": "64-true"}
# How long a process waits for the others: compiling a step or writing a checkpoint takes less.
PATIENCE = timedelta(minutes=5)


def make_fabric(device: str, precision: str) -> Fabric:
    """One process, or those that `torchrun` or SLURM started, on the chosen device."""
    check_choice("precision", precision, list(PRECISIONS))
    check_choice("device", device, ("auto", "cpu", "cuda"))
    require(device != "cuda" or torch.cuda.is_available(), "device is 'cuda', but torch sees no GPU: use --device cpu.")
    # Under bf16, products that autocast leaves in float32 may use tf32 as well.
    torch.set_float32_matmul_precision("high" if precision in ("tf32", "bf16") else "highest")
    processes = process_count()
    nodes = 1 if processes == 1 else _number("GROUP_WORLD_SIZE", "SLURM_STEP_NUM_NODES", least=1)
    # Several processes have a connection that is opened and closed with their Fabric.
    fabric = _single(device, precision) if processes == 1 else _launched(device, precision, processes // nodes, nodes)
    if fabric.device.type == "cuda":
        _use_deterministic_algorithms()
    else:
        keep_freed_pages()
    if processes > 1:
        atexit.register(_close_process_group)
    return fabric


@cache
def _single(device: str, precision: str) -> Fabric:
    """One process. It is kept, since Fabric reads the entry points of all installed packages whenever it is made."""
    return _launched(device, precision, 1, 1)


def _launched(device: str, precision: str, devices: int, nodes: int) -> Fabric:
    # Fabric logs advice on launchers and matrix precision, both of which are chosen here.
    for name in ("lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    several = devices * nodes > 1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fabric = Fabric(
            accelerator=device,
            precision=PRECISIONS[precision],  # type: ignore[arg-type]
            devices=devices,
            num_nodes=nodes,
            strategy=_ClosingStrategy(timeout=PATIENCE) if several else "auto",
            # One process asks no one for its rank: Fabric takes an allocation of SLURM for a job of several.
            plugins=[] if several else [LightningEnvironment()],
        )
        fabric.launch()
    return fabric


def process_count() -> int:
    """How many processes torchrun or srun started for this command; 1 inside an allocation of SLURM without srun."""
    return _number("WORLD_SIZE", "SLURM_STEP_NUM_TASKS", least=1)


def process_rank() -> int:
    """The number of this process among them, from 0; the first one prints and writes."""
    by_slurm = ["SLURM_PROCID"] if "SLURM_STEP_NUM_TASKS" in os.environ else []
    return _number("RANK", *by_slurm, least=0)


def _number(*names: str, least: int) -> int:
    """The first of these environment variables that is set; otherwise the least value."""
    name = next((name for name in names if name in os.environ), None)
    if name is None:
        return least
    text = os.environ[name]
    require(
        text.isascii() and text.isdigit() and len(text) < 10 and int(text) >= least,
        f"The environment variable {name} is {text!r}: let torchrun or srun set it, or remove it.",
    )
    return int(text)


class _ClosingStrategy(DDPStrategy):
    """Several processes, whose networks drop their connections before the interpreter shuts down."""

    wrapped: ClassVar[weakref.WeakSet[DistributedDataParallel]] = weakref.WeakSet()

    def setup_module(self, module: torch.nn.Module) -> DistributedDataParallel:
        network = super().setup_module(module)
        self.wrapped.add(network)
        return network


def _close_process_group() -> None:
    """Close the connections between processes before the interpreter shuts down.

    Gloo's threads end with the last reference to the group. A thread that frees a tensor while the interpreter shuts
    down requests a lock that no longer exists, and the process aborts although all its work is done.
    """
    if not dist.is_initialized():
        return
    for network in _ClosingStrategy.wrapped:
        for name in ("logger", "reducer", "process_group"):
            network.__dict__.pop(name, None)
    dist.destroy_process_group()


def _use_deterministic_algorithms() -> None:
    """Sum in a fixed order on a GPU too, so that a resumed run equals an uninterrupted one bit for bit."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # No code reads an entry before writing it, so torch need not fill new tensors.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def seed_epoch(seed: int, epoch: int) -> None:
    """Seed an epoch from the run's seed and its own number, so that a resumed run repeats it exactly."""
    torch.manual_seed(seed * 1_000_003 + epoch)
