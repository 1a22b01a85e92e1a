"""Peak memory of a step against the formula of `ckgconv.nn.step_memory`, each case in a process of its own.

A network or a single layer, plain or with the passes of a device, on two molecule-like graphs with global support: the
case `base` has 2 blocks of width 32, kernels of 2 blocks and RRWP-4; each other case changes one of these.

    python benchmarks/step_memory.py [--nodes 400] [--device cuda] [--precision tf32] [--cases base …] [--json out.json]
"""

import argparse
import gc
import json
import resource
import sys
from collections.abc import Callable
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from scale import molecule_like
from torch import Tensor
from torch_geometric.data import Data

from ckgconv import CKGCN, CKGConv, recipe
from ckgconv.backends import accelerate
from ckgconv.engine.machine import commit, device_name, versions
from ckgconv.engine.setup import make_fabric

GRAPHS = 2
BASE = {"width": 32, "blocks": 2, "kernel": 2, "steps": 4, "pe": "rrwp", "dropout": 0.0}
CHANGES: dict[str, dict[str, Any]] = {
    "base": {},
    "4 blocks": {"blocks": 4},
    "width 64": {"width": 64},
    "kernel of 1 block": {"kernel": 1},
    "linear kernel": {"kernel": 0},
    "RRWP-16": {"steps": 16},
    "SPD": {"pe": "spd"},
    "dropout": {"dropout": 0.5},
    "one layer": {"blocks": 1, "layer": True, "dropout": 0.1},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=400)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--precision", default="32")
    parser.add_argument("--cases", nargs="*", default=list(CHANGES), choices=CHANGES, metavar="CASE")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    rows = [row for kind in ("passes", "plain") for row in measured_kind(kind, options)]
    table = Table("case", "modules", "gradients", "pairs", "peak MB", "formula MB", "peak / formula")
    for row in rows:
        numbers = f"{row['pairs']:,}", f"{row['peak'] / 1e6:,.0f}", f"{row['formula'] / 1e6:,.0f}"
        table.add_row(row["name"], row["kind"], str(row["gradients"]), *numbers, f"{row['peak'] / row['formula']:.2f}")
    Console(width=120).print(table)
    if options.json:
        report = {"versions": versions(), "commit": commit(), "precision": options.precision, "rows": rows}
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")


def measured_kind(kind: str, options: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for name in options.cases:
        for gradients in (True, False):
            case = BASE | CHANGES[name] | {"name": name, "kind": kind, "gradients": gradients}
            rows.append(case | isolated(case, options))
            print(f"{name}, {kind}: {rows[-1]['peak'] / rows[-1]['formula']:.2f}", file=sys.stderr)
    return rows


def isolated(case: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """On a CPU in a child of this process, which itself computes nothing: only so does a peak belong to one case."""
    if options.device != "cpu":
        gc.collect()
        torch.cuda.empty_cache()
        return measured(case, options)
    with get_context("fork").Pool(1) as pool:
        return pool.apply(measured, (case, options))


def measured(case: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Pairs, peak beyond what the model and a small step before needed, and the formula."""
    torch.manual_seed(0)
    fabric = make_fabric(options.device, options.precision)
    model: CKGCN | CKGConv
    model, run = layer(case) if case.get("layer") else network(case)
    model = model.to(fabric.device) if case["kind"] == "plain" else accelerate(model, fabric.device)
    model.train(case["gradients"])
    optimizer = torch.optim.AdamW(model.parameters())
    small, large = (molecule_like(nodes, GRAPHS, True).batch(torch.arange(GRAPHS)) for nodes in (20, options.nodes))
    step(run, small.to(fabric.device), optimizer, fabric, case["gradients"])
    large, before = large.to(fabric.device), held_bytes(fabric.device)
    step(run, large, optimizer, fabric, case["gradients"])
    pairs = GRAPHS * options.nodes**2
    with torch.set_grad_enabled(case["gradients"]), fabric.autocast():
        formula = model.step_bytes(pairs)
    device = device_name(fabric.device)
    return {"pairs": pairs, "peak": peak_bytes(fabric.device) - before, "formula": formula, "device": device}


Run = Callable[[Data], Tensor]


def network(case: dict[str, Any]) -> tuple[CKGCN, Run]:
    base = recipe("zinc").model
    kernel = replace(base.kernel, blocks=case["kernel"], dropout=case["dropout"], mlp_dropout=case["dropout"])
    model = CKGCN.from_recipe(
        replace(
            base, width=case["width"], blocks=case["blocks"], steps=case["steps"], encoding=case["pe"], kernel=kernel
        )
    )
    return model, model


def layer(case: dict[str, Any]) -> tuple[CKGConv, Run]:
    width = case["width"]
    model = CKGConv(
        width, width, steps=case["steps"], pe=case["pe"], kernel_blocks=case["kernel"], mlp_dropout=case["dropout"]
    )
    return model, lambda data: model(
        torch.ones(data.num_nodes, width, device=data.x.device), data.edge_index, batch=data.batch
    )


def step(run: Run, data: Data, optimizer: torch.optim.Optimizer, fabric: Any, gradients: bool) -> None:
    with torch.set_grad_enabled(gradients):
        with fabric.autocast():
            prediction = run(data)
        if gradients:
            optimizer.zero_grad()
            prediction.square().mean().backward()
            optimizer.step()


def held_bytes(device: torch.device) -> int:
    """What the process holds before a step that is measured."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    return peak_bytes(device)


def peak_bytes(device: torch.device) -> int:
    """Allocated on a GPU so far; on a CPU, the largest resident memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    main()
