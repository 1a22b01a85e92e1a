"""One layer on one CPU thread: forward and backward of CKGConv and of PyG's layers, in milliseconds.

    python benchmarks/layer.py [--rounds 7] [--graphs 64] [--width 64]

The molecules are the first of ZINC's training split, with bond types as one-hot edge attributes. Coordinates and
support are computed in every forward pass, as in a model of one's own. Each round times all layers in turn, plain ones
first: accelerated ones let the process keep its memory, from which plain ones would gain too. What is measured is
processor time of the one thread, so that waiting for other processes of a shared machine does not count; caches are
shared all the same, so the least and the median over rounds are printed.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv, GINEConv, GPSConv

from ckgconv import CKGConv
from ckgconv.backends import accelerate
from ckgconv.data import zinc

BONDS = 4
SUPPORTS: dict[str, int | str] = {"1 hop": 1, "3 hops": 3, "global": "global"}
WARM_UP = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--graphs", type=int, default=64)
    parser.add_argument("--width", type=int, default=64)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    data = zinc()
    batch = data.batch(data.train[: options.graphs])
    x = torch.randn(batch.num_nodes, options.width, requires_grad=True)
    bonds = nn.functional.one_hot(batch.edge_attr.view(-1), BONDS).float()
    graphs = batch.edge_index, bonds, batch.batch
    times = measured(layers(options.width, *graphs), x, options.rounds)
    times |= measured(accelerated_layers(options.width, *graphs), x, options.rounds)
    table = Table(
        "layer", "least", "median", title=f"{options.graphs} molecules, {batch.num_nodes} nodes, ms of one thread"
    )
    for name, found in times.items():
        table.add_row(name, f"{min(found):.1f}", f"{statistics.median(found):.1f}")
    Console().print(table)


def measured(cases: dict[str, Callable[[Tensor], Tensor]], x: Tensor, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round."""
    times: dict[str, list[float]] = {name: [] for name in cases}
    for number in range(WARM_UP + rounds):
        for name, run in cases.items():
            seconds = timed(run, x)
            if number >= WARM_UP:
                times[name].append(1e3 * seconds)
    return times


def layers(width: int, edge_index: Tensor, bonds: Tensor, batch: Tensor) -> dict[str, Callable[[Tensor], Tensor]]:
    """Each layer as a function of x."""

    def perceptron() -> nn.Module:
        return nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width))

    gine = GINEConv(perceptron(), edge_dim=BONDS)
    gat = GATv2Conv(width, width, edge_dim=BONDS)
    gps = GPSConv(width, GINEConv(perceptron(), edge_dim=BONDS), heads=4)
    cases: dict[str, Callable[[Tensor], Tensor]] = {
        "GINEConv": lambda x: gine(x, edge_index, bonds),
        "GATv2Conv": lambda x: gat(x, edge_index, bonds),
        "GPSConv": lambda x: gps(x, edge_index, batch, edge_attr=bonds),
    }
    for name, support in SUPPORTS.items():
        own = CKGConv(width, width, support=support, edge_dim=BONDS)
        cases[f"CKGConv, {name}"] = lambda x, own=own: own(x, edge_index, bonds, batch)
    return cases


def accelerated_layers(
    width: int, edge_index: Tensor, bonds: Tensor, batch: Tensor
) -> dict[str, Callable[[Tensor], Tensor]]:
    """The same, accelerated."""
    cases: dict[str, Callable[[Tensor], Tensor]] = {}
    for name, support in SUPPORTS.items():
        fast = accelerate(CKGConv(width, width, support=support, edge_dim=BONDS))
        cases[f"CKGConv, {name}, accelerated"] = lambda x, own=fast: own(x, edge_index, bonds, batch)
    return cases


def timed(run: Callable[[Tensor], Tensor], x: Tensor) -> float:
    """Seconds of processor time of a forward and a backward pass."""
    start = time.thread_time()
    run(x).sum().backward()
    return time.thread_time() - start


if __name__ == "__main__":
    main()
