"""Time and peak memory of the coordinates and the support of one large graph, each case in a process of its own.

A molecule-like graph of short branches and small rings, or one of random edges, four to a node: the support is a number
of hops, and no coordinate forms the n² pairs. Peak memory is what the process needed beyond its start.

    python benchmarks/encode.py [--nodes 40000] [--hops 2] [--graph molecule-like | random] [--coordinates spd rd …]
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from rich.console import Console
from rich.table import Table
from scale import molecule_bonds

from ckgconv import pack
from ckgconv.graphs import PackedGraphs
from ckgconv.pairs import Encoding

# Steps that a network of the paper reads: hops, none, return probabilities, times, powers.
STEPS = {"spd": 8, "rd": 0, "pair_rwse": 8, "heat": 8, "rrwp": 4}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=40_000)
    parser.add_argument("--hops", type=int, default=2)
    parser.add_argument("--graph", choices=("molecule-like", "random"), default="molecule-like")
    parser.add_argument("--coordinates", nargs="*", default=list(STEPS))
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measured(options.case, options)))
        return
    table = Table("coordinate", "pairs", "seconds", "peak MB", "all pairs would be GB")
    for name in options.coordinates:
        command = [sys.executable, __file__, "--case", name, "--nodes", str(options.nodes)]
        command += ["--hops", str(options.hops), "--graph", options.graph]
        row = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        table.add_row(
            name, f"{row['pairs']:,}", f"{row['seconds']:.1f}", f"{row['peak_mb']:,.0f}", f"{row['dense_gb']:,.1f}"
        )
    Console(width=100).print(table)


def measured(name: str, options: argparse.Namespace) -> dict[str, float]:
    graphs, encoding = drawn(options), Encoding(name, STEPS[name], 0, options.hops)
    encoding.pairs(
        small := pack(torch.tensor([[0, 1], [1, 0]]), num_nodes=2),
        encoding.coordinates(small, torch.float32),
        torch.float32,
    )
    before, start = peak_mb(), time.perf_counter()
    pairs = encoding.pairs(graphs, encoding.coordinates(graphs, torch.float32), torch.float32)
    seconds = time.perf_counter() - start
    dense = graphs.num_nodes**2 * (3 * 8 + 2 * encoding.channels * 4 + encoding.coordinate.cell_bytes(torch.float32))
    return {"pairs": pairs.num_pairs, "seconds": seconds, "peak_mb": peak_mb() - before, "dense_gb": dense / 1e9}


def drawn(options: argparse.Namespace) -> PackedGraphs:
    generator = torch.Generator().manual_seed(0)
    if options.graph == "random":
        one_way = torch.randint(options.nodes, (2, 2 * options.nodes), generator=generator)
    else:
        one_way = molecule_bonds(options.nodes, generator)
    return pack(torch.cat([one_way, one_way.flip(0)], dim=1), num_nodes=options.nodes)


def peak_mb() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


if __name__ == "__main__":
    main()
