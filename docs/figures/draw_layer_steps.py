"""Draw the time of a training step of two layers on one graph: encoded in every step, encoded once, and GATv2.

    python docs/figures/draw_layer_steps.py             from the measurements in results/layer-steps.json
    python docs/figures/draw_layer_steps.py --measure   which are made anew, on one thread of the CPU

A step is forward, backward and update. The three take turns for half a minute, ten rounds at least, and the fastest
round of each counts: other work on the machine can only make a step slower. The record has the median as well.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import torch
from matplotlib import pyplot
from torch import Tensor, nn
from torch_geometric.nn import GATv2Conv

from ckgconv import CKGConv
from ckgconv.engine.machine import commit, device_name, versions

HERE = Path(__file__).parent
RECORD = HERE.parents[1] / "results" / "layer-steps.json"
SIZES = (100, 300, 1_000, 3_000, 10_000)
WIDTH, STEPS, HOPS = 32, 4, 2
ROUNDS, SECONDS = 10, 30
SERIES = {
    "CKGConv, encoded in every step": ("#d9731a", "o"),
    "CKGConv, encoded once": ("#1f5fa8", "s"),
    "GATv2Conv": ("#9aa1ab", "^"),
}


class Net(nn.Module):
    """Two layers of a kind."""

    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList([make(), make()])

    def forward(self, x: Tensor, edge_index: Tensor, **given: object) -> Tensor:
        for layer in self.layers:
            x = layer(x, edge_index, **given).relu()
        return x


def graph(nodes: int) -> Tensor:
    """A ring with half as many random chords as nodes, both directions: three neighbours on average."""
    generator = torch.Generator().manual_seed(nodes)
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    chords = torch.randint(nodes, (2, nodes // 2), generator=generator)
    one_way = torch.cat([ring, chords], dim=1)
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def steps_of(nodes: int) -> dict[str, Callable[[], None]]:
    """One training step of each series."""
    edge_index, x, target = graph(nodes), torch.randn(nodes, WIDTH), torch.randn(nodes, WIDTH)
    convolutions = Net(lambda: CKGConv(WIDTH, WIDTH, steps=STEPS, support=HOPS))
    attention = Net(lambda: GATv2Conv(WIDTH, WIDTH))
    first = convolutions.layers[0]
    assert isinstance(first, CKGConv)
    pairs = first.encode(edge_index, num_nodes=nodes)

    def step(model: Net, **given: object) -> Callable[[], None]:
        optimiser = torch.optim.AdamW(model.parameters())

        def run() -> None:
            optimiser.zero_grad()
            (model(x, edge_index, **given) - target).square().mean().backward()
            optimiser.step()

        return run

    return dict(zip(SERIES, (step(convolutions), step(convolutions, pairs=pairs), step(attention)), strict=True))


def timed(steps: dict[str, Callable[[], None]]) -> dict[str, list[float]]:
    """Milliseconds of each step, round by round."""
    times: dict[str, list[float]] = {name: [] for name in steps}
    begin = time.perf_counter()
    while len(times["GATv2Conv"]) < ROUNDS or time.perf_counter() - begin < SECONDS:
        for name, run in steps.items():
            start = time.perf_counter()
            run()
            times[name].append(1000 * (time.perf_counter() - start))
    return times


def measure() -> None:
    """Write the record."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    fastest: dict[str, list[float]] = {name: [] for name in SERIES}
    median: dict[str, list[float]] = {name: [] for name in SERIES}
    rounds = []
    for nodes in SIZES:
        times = timed(steps_of(nodes))
        rounds.append(len(times["GATv2Conv"]))
        for name, taken in times.items():
            fastest[name].append(round(min(taken), 3))
            median[name].append(round(statistics.median(taken), 3))
    record = {
        "commit": commit(),
        "device": device_name(torch.device("cpu")),
        "versions": versions(),
        "width": WIDTH,
        "steps": STEPS,
        "hops": HOPS,
        "nodes": SIZES,
        "rounds": rounds,
        "load": os.getloadavg()[1],
        "step_ms": fastest,
        "median_ms": median,
    }
    RECORD.write_text(json.dumps(record, indent=2) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure anew")
    if parser.parse_args().measure:
        measure()
    record = json.loads(RECORD.read_text())
    figure, axes = pyplot.subplots(figsize=(7.2, 4.0), layout="constrained")
    for name, (colour, marker) in SERIES.items():
        axes.plot(record["nodes"], record["step_ms"][name], color=colour, marker=marker, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter("{x:,g}")
    axes.yaxis.set_major_formatter("{x:,g}")
    axes.grid(alpha=0.3)
    axes.set_xlabel("nodes of the graph")
    axes.set_ylabel("one training step / ms")
    settings = f"two layers of width {record['width']}, RRWP-{record['steps']}, {record['hops']} hops"
    axes.set_title(f"{settings}\n{record['device']}", fontsize=10)
    axes.legend(fontsize=9)
    figure.savefig(HERE / "layer-steps.png", dpi=150)


if __name__ == "__main__":
    main()
