"""Time and peak memory of a training step as graphs grow: dense global support against hops and sparse global.

    molecules    batches of 32 random molecule-like graphs, the ZINC recipe: dense global support, RRWP-21
    one graph    a single such graph with a target per node, RRWP-4, 2 blocks of width 32: each of the three supports

A step includes everything: coordinates, forward, backward, update. Its time is that of an epoch divided by its steps,
run as training runs it, the faster of two epochs after one that compiles and captures. On a CPU each case has a process
of its own, and so its own memory; on a GPU the cases of a series share one, so that Triton kernels are compiled once. A
case that does not fit or is too slow is a row that says so, and larger ones of its kind are not tried.

    python benchmarks/scale.py [--device cuda] [--precision tf32] [--limit-s 30] [--json out.json] [--figure out.png]
"""

import argparse
import gc
import json
import math
import resource
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from ckgconv import CKGCN, InputError, recipe
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.engine.epoch import train_epoch
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import commit, device_name, peak_memory_mb, versions
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.pairs.memory import free_bytes
from ckgconv.recipe import Recipe

MOLECULES = (25, 50, 100, 200, 400)
GRAPHS = (1_000, 3_000, 10_000, 30_000, 100_000, 200_000)
BATCH, ZINC_TRAINING_GRAPHS = 32, 10_000
# What is drawn and tabulated: name, support, colour, marker.
SERIES: dict[str, tuple[str | int, str, str]] = {
    "32 molecules, global": ("global", "tab:gray", "s"),
    "one graph, global": ("global", "tab:red", "o"),
    "one graph, sparse global": ("sparse_global", "tab:blue", "^"),
    "one graph, 2 hops": (2, "tab:green", "v"),
}
# Columns of the table that a measured row has.
COLUMNS = ("stored_pairs", "step_ms", "epoch_s", "peak_memory_mb")
# Seconds that a process may need to start, in addition to its steps.
START = 180


def main() -> None:
    options = parse()
    if options.cases:
        measure_all(json.loads(options.cases), options)
        return
    rows = []
    for series in SERIES:
        sizes = options.molecule_sizes if series.startswith("32") else options.graph_sizes
        rows += measured_series(series, sizes, options)
    print_table(rows)
    if options.json:
        report = {"versions": versions(), "commit": commit(), "precision": options.precision, "rows": rows}
        options.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if options.figure:
        draw(rows, options.figure)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="32", help="32, tf32, bf16 or 64")
    parser.add_argument("--limit-s", type=float, default=30.0, help="a longer step is not timed")
    parser.add_argument("--steps", type=int, default=5, help="steps of an epoch")
    parser.add_argument("--molecule-sizes", type=int, nargs="*", default=MOLECULES)
    parser.add_argument("--graph-sizes", type=int, nargs="*", default=GRAPHS)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--cases", help=argparse.SUPPRESS)
    return parser.parse_args()


def measured_series(series: str, sizes: tuple[int, ...], options: argparse.Namespace) -> list[dict[str, Any]]:
    """A row per size; after one that fails, the larger ones are rows without a measurement."""
    cases = [{"series": series, "nodes": nodes} for nodes in sizes]
    if not cases:
        return []
    shared = torch.cuda.is_available() and options.device != "cpu"
    rows: list[dict[str, Any]] = []
    for together in [cases] if shared else [[case] for case in cases]:
        if any("outcome" in row for row in rows):
            break
        rows += in_own_process(together, options)
    failed = rows[-1]["nodes"]
    rows += [case | {"outcome": f"not tried, as {failed:,}"} for case in cases[len(rows) :]]
    for row in rows:
        print(f"{series}, {row['nodes']:,} nodes: {row.get('outcome') or row['step_ms']}", file=sys.stderr)
    return rows


def in_own_process(cases: list[dict[str, Any]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Rows of the cases up to the first that fails."""
    command = [sys.executable, __file__, "--cases", json.dumps(cases), "--device", options.device]
    command += ["--precision", options.precision, "--limit-s", str(options.limit_s), "--steps", str(options.steps)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            out, errors = process.communicate(timeout=START + 3 * len(cases) * options.steps * options.limit_s)
            outcome = "does not fit"
        except subprocess.TimeoutExpired:
            process.kill()
            out, errors = process.communicate()
            outcome = f"over {options.limit_s:g} s a step"
    found = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    rows = [case | row for case, row in zip(cases, found, strict=False)]
    # A signal: the time limit, or the system ended it, as it ends a process that uses all memory.
    if process.returncode < 0 and len(rows) < len(cases):
        rows.append(cases[len(rows)] | {"outcome": outcome})
    elif process.returncode > 0:
        raise RuntimeError(f"{cases[len(rows) :]} failed:\n{errors[-3000:]}")
    return rows


def measure_all(cases: list[dict[str, Any]], options: argparse.Namespace) -> None:
    """Print a line for each case, up to the first without a measurement."""
    for case in cases:
        found = measure(case, options)
        print(json.dumps(found), flush=True)
        if "outcome" in found:
            return
        gc.collect()
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()


def measure(case: dict[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """Median step and peak memory of one case, or why there is none."""
    fabric = make_fabric(options.device, options.precision)
    if fabric.device.type == "cpu":
        # A refused allocation can be reported; a machine out of memory cannot.
        resource.setrlimit(resource.RLIMIT_DATA, (free_bytes(fabric.device) or -1, -1))
    torch.manual_seed(0)
    chosen, data = task(case["series"], case["nodes"], options.steps)
    before = peak_memory_mb(fabric.device)
    try:
        learner = make_learner(fabric, CKGCN.from_recipe(chosen), data, chosen)
        step = step_seconds(learner, options)
        memory = peak_memory_mb(fabric.device) - before
        pairs = stored_pairs(learner)
    except TooSlow:
        return {"outcome": f"over {options.limit_s:g} s a step"}
    except InputError as refusal:
        return {"outcome": "refused as beyond memory", "sentence": str(refusal)}
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not any(words in str(error).lower() for words in ("out of memory", "allocate memory")):
            raise
        return {"outcome": "does not fit"}
    found = {"step_ms": round(1e3 * step, 3), "peak_memory_mb": memory, "stored_pairs": pairs}
    if data.num_graphs == BATCH:
        found["epoch_s"] = round(step * math.ceil(ZINC_TRAINING_GRAPHS / BATCH), 1)
    return found | {"device": device_name(fabric.device)}


class TooSlow(Exception):
    """A step was longer than the limit."""


def step_seconds(learner: Learner, options: argparse.Namespace) -> float:
    """Mean over the steps of an epoch: the faster of two, after one that compiles, captures and fills memory."""
    steps = len(learner.data.train) // learner.recipe.batch_size
    heard: list[float] = []

    def tick(graphs: int, loss: float) -> None:
        heard.append(time.perf_counter())
        # The first step compiles and is no measure.
        if len(heard) > 1 and heard[-1] - heard[-2] > options.limit_s:
            raise TooSlow

    train_epoch(learner, 0, tick)
    heard.clear()
    epochs: list[float] = []
    for epoch in (1, 2):
        epochs.append(train_epoch(learner, epoch, tick)["seconds"])
        heard.clear()
    seconds = min(epochs)
    if seconds / steps > options.limit_s:
        raise TooSlow
    return seconds / steps


def stored_pairs(learner: Learner) -> int:
    """Rows of the support of a batch; those of the dense one are known, and may not fit twice."""
    data = learner.data
    if learner.model.recipe.support == "global":
        return int(data.node_ptr.diff().square().sum())
    batch = learner.batch(torch.arange(data.num_graphs, device=learner.fabric.device))
    return learner.model.prepare(batch).pairs.num_pairs


def task(series: str, nodes: int, steps: int) -> tuple[Recipe, PackedDataset]:
    """Recipe and data of a case: an epoch is `steps` batches of the same graphs."""
    zinc = recipe("zinc")
    if series.startswith("32"):
        data = molecule_like(nodes, BATCH, node_targets=False)
        return zinc, replace(data, train=data.train.repeat(steps))
    head = replace(zinc.model.head, pooling="none")
    model = replace(zinc.model, blocks=2, width=32, steps=4, support=SERIES[series][0], head=head)
    data = molecule_like(nodes, 1, node_targets=True)
    training = replace(zinc.training, batch_size=1)
    return replace(zinc, model=model, training=training), replace(data, train=data.train.repeat(steps))


def molecule_like(nodes: int, graphs: int, node_targets: bool) -> PackedDataset:
    """Trees of short branches with a tenth more bonds that close small rings; 21 node types, bonds of types 1 to 3."""
    generator = torch.Generator().manual_seed(nodes)
    edges, bonds = [], []
    for _ in range(graphs):
        one_way = molecule_bonds(nodes, generator)
        bond = torch.randint(1, 4, (one_way.shape[1], 1), generator=generator)
        edges.append(torch.cat([one_way, one_way.flip(0)], dim=1))
        bonds.append(torch.cat([bond, bond]))
    return from_arrays(
        {
            "num_nodes": torch.full((graphs,), nodes),
            "num_edges": torch.tensor([part.shape[1] for part in edges]),
            "edge_index": torch.cat(edges, dim=1),
            "edge_attr": torch.cat(bonds),
            "x": torch.randint(21, (graphs * nodes, 1), generator=generator),
            "y": torch.randn(graphs * nodes if node_targets else graphs, generator=generator),
            "train_idx": torch.arange(graphs),
        }
    )


def molecule_bonds(nodes: int, generator: torch.Generator) -> torch.Tensor:
    """[2, ·] each bond once: a node joins one of the three before it, and every tenth one a few nodes on."""
    child = torch.arange(1, nodes)
    back = (torch.rand(nodes - 1, generator=generator) * child.clamp(max=3)).long()
    tree = torch.stack([child - 1 - back, child])
    start = torch.randperm(nodes - 6, generator=generator)[: nodes // 10]
    ring = torch.stack([start, start + torch.randint(4, 7, start.shape, generator=generator)])
    return torch.unique(torch.cat([tree, ring], dim=1), dim=1)


def print_table(rows: list[dict[str, Any]]) -> None:
    device = next((row["device"] for row in rows if "device" in row), "nothing measured")
    names = ("case", "nodes", "stored pairs", "step ms", "ZINC epoch s", "peak MB", "")
    table = Table(*names, title=f"training step, {device}")
    for column in table.columns[1:6]:
        column.justify = "right"
    for row in rows:
        numbers = [f"{row[name]:,}" if name in row else "–" for name in COLUMNS]
        table.add_row(row["series"], f"{row['nodes']:,}", *numbers, row.get("outcome", ""))
    # A table of numbers folded at 80 columns cannot be read.
    Console(width=max(Console().width, 120)).print(table)


def draw(rows: list[dict[str, Any]], path: Path) -> None:
    """Two panels, time and memory, log-log; crosses where a size does not fit or is too slow."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, 2, figsize=(11, 5), layout="constrained")
    units = {"step_ms": "time of a training step / ms", "peak_memory_mb": "peak memory / MB"}
    for axes, (name, label) in zip(panels, units.items(), strict=True):
        axes.set_xscale("log")
        axes.set_yscale("log")
        for series, (_, colour, marker) in SERIES.items():
            draw_series(axes, series, points(rows, series, name), colour, marker)
        draw_missing(axes, rows)
        axes.margins(x=0.12)
        axes.set_xlabel("nodes of a graph  (×: does not fit, is refused or too slow)")
        axes.set_ylabel(label)
        axes.grid(alpha=0.3, which="both", linewidth=0.4)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(SERIES))
    figure.suptitle(finding(rows), fontsize=12)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def draw_series(axes: Any, series: str, found: list[tuple[int, float]], colour: str, marker: str) -> None:
    """Measured points, their exponent, and a dotted guide of slope 1 or 2, whichever is nearer, through the last."""
    nodes, values = [each[0] for each in found], [each[1] for each in found]
    axes.plot(nodes, values, color=colour, marker=marker, markersize=5, label=series)
    slope = exponent(found)
    if slope is not None:
        guide = 2 if slope > 1.5 else 1
        axes.plot(nodes, [values[-1] * (each / nodes[-1]) ** guide for each in nodes], ":", color=colour, linewidth=1)
        place = {"xytext": (6, -4), "textcoords": "offset points", "color": colour}
        axes.annotate(f"$n^{{{slope:.2f}}}$", (nodes[-1], values[-1]), **place)


def draw_missing(axes: Any, rows: list[dict[str, Any]]) -> None:
    """Crosses at the top, one height per series, since several may end at the same size."""
    lowest, highest = axes.get_ylim()
    axes.set_ylim(lowest, highest * 4)
    for place, (series, (_, colour, _)) in enumerate(SERIES.items()):
        missing = [row["nodes"] for row in rows if row["series"] == series and "outcome" in row]
        axes.plot(missing, [highest * 3 / 1.4**place] * len(missing), "x", color=colour)


def points(rows: list[dict[str, Any]], series: str, name: str) -> list[tuple[int, float]]:
    # Memory below a megabyte is printed as 0, which has no logarithm.
    return [(row["nodes"], row[name]) for row in rows if row["series"] == series and row.get(name, 0) > 0]


def exponent(found: list[tuple[int, float]]) -> float | None:
    """Slope of the last three sizes in the log-log plane; None for fewer than two."""
    if len(found) < 2:
        return None
    nodes, values = zip(*[(math.log(size), math.log(value)) for size, value in found[-3:]], strict=True)
    return statistics.linear_regression(nodes, values).slope


def finding(rows: list[dict[str, Any]]) -> str:
    """The title: how a step grows with one graph, and how far."""
    parts = []
    for series in list(SERIES)[1:]:
        found = points(rows, series, "step_ms")
        slope = exponent(found)
        growth = "" if slope is None else f" grows as $n^{{{slope:.1f}}}$"
        if found:
            parts.append(f"{series.removeprefix('one graph, ')}{growth} up to {found[-1][0]:,} nodes")
    return "A training step on one graph: " + ",\n".join([*parts[:1], ", ".join(parts[1:])]).strip(",\n")


if __name__ == "__main__":
    main()
