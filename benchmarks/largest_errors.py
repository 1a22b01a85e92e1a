"""The molecules of ZINC's validation split with the largest errors, and what the metric would be without them.

    python benchmarks/largest_errors.py zinc zinc-grit results/zinc/seeds/seed1 --most 5

Of each run: the mean absolute error, and that without its 1, 2, … largest errors. Of each of these molecules: its
number in the data set, target, error, the sizes of its rings (a minimum basis of cycles), and the longest cycle of its
bonds. Penalised logP subtracts 3.5 for each atom over six in the longest cycle of a basis that is not minimum.
"""

import argparse
import json

import networkx as nx  # type: ignore[import-untyped]
import torch

from ckgconv import open_run
from ckgconv.data import PackedDataset
from ckgconv.engine.epoch import split_predictions


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", help="folders of runs on ZINC, or names of trained networks")
    parser.add_argument("--most", type=int, default=5, help="errors of each run")
    parser.add_argument("--device", default="cpu", help="cpu or cuda")
    options = parser.parse_args()
    for name in options.runs:
        print(json.dumps({"run": name, **largest_errors(name, options.most, options.device)}), flush=True)


def largest_errors(name: str, most: int, device: str) -> dict[str, object]:
    """Of one run."""
    run = open_run(name, device=device)
    parts = list(split_predictions(run.learner, "val"))
    predicted, target = (torch.cat(each).double().flatten().cpu() for each in zip(*parts, strict=True))
    errors = (predicted - target).abs()
    order = errors.argsort(descending=True)
    data = run.learner.data.to(torch.device("cpu"))
    graphs = data.split("val")
    molecules = [
        {
            "graph": int(graphs[row]),
            "target": round(float(target[row]), 2),
            "error": round(float(errors[row]), 2),
            **rings(data, int(graphs[row])),
        }
        for row in order[:most].tolist()
    ]
    left_out = [round(float(errors[order[count:]].mean()), 4) for count in range(1, most + 1)]
    return {"mae": round(float(errors.mean()), 4), "without": left_out, "molecules": molecules}


def rings(data: PackedDataset, graph: int) -> dict[str, object]:
    """Sizes of the rings of a graph, and of its longest cycle."""
    bonds = nx.Graph(data.batch(torch.tensor([graph])).edge_index.T.tolist())
    sizes = sorted(len(cycle) for cycle in nx.minimum_cycle_basis(bonds))
    return {"rings": sizes, "longest": max((len(cycle) for cycle in nx.simple_cycles(bonds)), default=0)}


if __name__ == "__main__":
    main()
