"""RRWP-21 of all 12,000 graphs of ZINC-12k, as training computes it: per batch, never stored.

python benchmarks/rrwp_zinc.py [--threads 2] [--batch 256]
"""

import argparse
import json
import time

import torch

from ckgconv import pack
from ckgconv.data import zinc
from ckgconv.pe import rrwp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    data = zinc()
    pairs = 0
    start = time.perf_counter()
    for numbers in torch.arange(data.num_graphs).split(options.batch):
        batch = data.batch(numbers)
        pairs += rrwp(pack(batch.edge_index, batch.batch), steps=21).values.shape[0]
    report = {
        "graphs": data.num_graphs,
        "pairs": pairs,
        "threads": options.threads,
        "batch": options.batch,
        "torch": torch.__version__,
        "seconds": round(time.perf_counter() - start, 2),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
