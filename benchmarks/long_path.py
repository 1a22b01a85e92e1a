"""One training step on a path of 20,000 nodes with RRWP-8 and sparse global support: time and peak memory.

The ZINC recipe with two blocks, by default of width 32; memory grows with blocks × width. The dense form would store
400,000,000 pairs: 14.4 GB of coordinates before the first kernel value.

    python benchmarks/long_path.py [--width 32] [--json]
"""

import argparse
import json
import resource
import time
from dataclasses import replace

import torch
from torch_geometric.data import Data

from ckgconv import CKGCN, recipe
from ckgconv.backends import accelerate

NODES = 20_000
STEPS = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(0)
    path = torch.stack([torch.arange(NODES - 1), torch.arange(1, NODES)])
    data = Data(
        x=torch.randint(21, (NODES, 1)),
        edge_index=torch.cat([path, path.flip(0)], dim=1),
        edge_attr=torch.ones(2 * NODES - 2, 1, dtype=torch.int64),
    )
    model = CKGCN(replace(recipe("zinc").model, blocks=2, width=options.width, steps=STEPS, support="sparse_global"))
    model = accelerate(model, "cpu")
    optimiser = torch.optim.AdamW(model.parameters())
    start = time.perf_counter()
    batch = model.prepare(data)
    model(batch).abs().mean().backward()
    optimiser.step()
    gradients = [parameter.grad for parameter in model.parameters() if parameter.grad is not None]
    report = {
        "nodes": NODES,
        "stored_pairs": batch.pairs.num_pairs,
        "step_s": round(time.perf_counter() - start, 2),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "finite_gradients": all(bool(torch.isfinite(gradient).all()) for gradient in gradients),
    }
    print(json.dumps(report) if options.json else "\n".join(f"{key}: {value}" for key, value in report.items()))


if __name__ == "__main__":
    main()
