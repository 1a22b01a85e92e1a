"""Device, precision and processes, all through Lightning Fabric."""

import atexit
import logging
import os
import warnings

import torch
import torch.distributed as dist
from lightning.fabric import Fabric

from ckgconv.backends.cpu.memory import keep_freed_pages
from ckgconv.checks import check_choice, require

# What a person types → what Fabric calls it. tf32 is float32 with the matrix units' shorter mantissa.
PRECISIONS = {"32": "32-true", "tf32": "32-true", "bf16": "bf16-mixed", "64": "64-true"}


def make_fabric(device: str, precision: str) -> Fabric:
    """One process, or those that `torchrun` or SLURM started, on the chosen device."""
    check_choice("precision", precision, list(PRECISIONS))
    check_choice("device", device, ("auto", "cpu", "cuda"))
    require(device != "cuda" or torch.cuda.is_available(), "device is 'cuda', but torch sees no GPU: use --device cpu.")
    # What autocast leaves in float32 may use tf32 beside it.
    torch.set_float32_matmul_precision("high" if precision in ("tf32", "bf16") else "highest")
    processes = int(os.environ.get("WORLD_SIZE", os.environ.get("SLURM_NTASKS", "1")))
    nodes = int(os.environ.get("GROUP_WORLD_SIZE", os.environ.get("SLURM_NNODES", "1")))
    # Fabric advises on launchers and matrix precision; both are chosen here.
    for name in ("lightning.fabric", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.WARNING)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fabric = Fabric(
            accelerator=device,
            precision=PRECISIONS[precision],  # type: ignore[arg-type]
            devices=processes // nodes,
            num_nodes=nodes,
            strategy="ddp" if processes > 1 else "auto",
        )
        fabric.launch()
    if fabric.device.type == "cuda":
        _repeatable()
    else:
        keep_freed_pages()
    if processes > 1:
        atexit.register(_part)
    return fabric


def _part() -> None:
    """Close the connections between processes before the interpreter takes them apart."""
    if dist.is_initialized():
        dist.destroy_process_group()


def _repeatable() -> None:
    """Sums in a fixed order on a GPU too, so that a resumed run is bit for bit the uninterrupted one."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=True)
    # Every entry is written before it is read.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def seed_epoch(seed: int, epoch: int) -> None:
    """All randomness of an epoch follows from these two, so that a resumed run repeats it exactly."""
    torch.manual_seed(seed * 1_000_003 + epoch)
