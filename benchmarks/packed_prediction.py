"""Graphs per second that a trained network predicts, once their features exist.

    python benchmarks/packed_prediction.py zinc250k-descriptors molecules.npz [--device cuda] [--batches 64 2048]

The file is packed, as `ckgconv data describe` writes one. All of it is predicted twice for each number of graphs that
a batch may have, and the second time counts: kernels are compiled then. `largest` is the most that one has, since pairs
end a batch too. Embeddings are computed with the predictions.
"""

import argparse
import json
import time
from pathlib import Path

from ckgconv.data import load_packed
from ckgconv.engine import predict_packed
from ckgconv.engine.machine import commit, device_name
from ckgconv.engine.opened import open_network


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="folder, or name of a trained network of the package")
    parser.add_argument("packed", type=Path, help=".npz")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--batches", type=int, nargs="+", default=[64, 256, 1024, 2048, 4096])
    given = parser.parse_args()
    run, data = open_network(given.run, given.device), load_packed(given.packed)
    device = run.learner.fabric.device
    for size in given.batches:
        predict_packed.graphs_at_once = lambda run, size=size: size
        largest, seconds = max(len(graphs) for graphs in predict_packed.graph_batches(data, size)), []
        for _ in range(2):
            start = time.perf_counter()
            predict_packed.predict_packed(run, data)
            seconds.append(time.perf_counter() - start)
        report = {"graphs": data.num_graphs, "batch": size, "largest": largest}
        report |= {"graphs_per_s": round(data.num_graphs / seconds[1])}
        report |= {"first_s": round(seconds[0], 1), "device": device_name(device), "commit": commit()}
        print(json.dumps(report))


if __name__ == "__main__":
    main()
