"""Trains on one graph of two million nodes by samples, and evaluates it on all nodes, layer by layer.

    python benchmarks/large_graph.py --device cuda
    python benchmarks/large_graph.py --nodes 20000 --edges 100000 --device cpu
    torchrun --nproc-per-node 2 benchmarks/large_graph.py --nodes 20000 --edges 100000 --device cpu

The graph is a block model: classes of equal size, edges of which a share joins nodes of one class, and features that
are the direction of the class under noise several times as long. A classifier of single features is right for about a
third of the nodes; the neighbours say the rest. Prints one line of JSON.
"""

import argparse
import json
import resource
import time
from typing import Any

import torch
from torch import Tensor

from ckgconv import train
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.engine.record import Epoch
from ckgconv.engine.watcher import Silence
from ckgconv.recipe import (
    AttributeRecipe,
    CKGCNRecipe,
    DataRecipe,
    HeadRecipe,
    KernelRecipe,
    Recipe,
    SamplingRecipe,
    TrainingRecipe,
)


def main() -> None:
    options = arguments()
    start = time.perf_counter()
    data = block_model(options)
    drawn = time.perf_counter() - start
    print_progress(f"drawn in {drawn:.1f} s")
    clock = Clock()
    run = train(recipe_of(options), data=data, device=options.device, precision=options.precision, watcher=clock)
    if not run.learner.fabric.is_global_zero:
        return
    epochs = run.record.epochs
    seconds = [round(epoch.seconds, 2) for epoch in epochs]
    seeds = len(data.target_rows("train"))
    found: dict[str, Any] = {
        "nodes": options.nodes,
        "edges": options.edges,
        "hops": options.hops,
        "sampling": options.sampling,
        "processes": run.learner.fabric.world_size,
        "device": run.record.device,
        "parameters": run.record.parameters,
        "draw_graph_s": round(drawn, 2),
        "setup_s": round(clock.first_epoch - clock.begin, 2),
        "epoch_s": seconds,
        "evaluation_s": [round(each, 2) for each in clock.evaluations(epochs)],
        "training_nodes_per_s": round(seeds / min(seconds)),
        "evaluated_nodes_per_s": round(options.nodes / min(clock.evaluations(epochs))),
        "train_loss": [round(epoch.train_loss, 4) for epoch in epochs],
        "val_accuracy": [round(epoch.val, 4) for epoch in epochs],
        "test_accuracy": None if run.record.best is None else run.record.best.test,
        "peak_gpu_mb": torch.cuda.max_memory_allocated() // 2**20 if torch.cuda.is_available() else None,
        "peak_host_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "total_s": round(time.perf_counter() - start, 1),
    }
    print(json.dumps(found), flush=True)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=2_000_000)
    parser.add_argument("--edges", type=int, default=10_000_000, help="undirected: each is stored in both directions")
    parser.add_argument("--classes", type=int, default=8)
    parser.add_argument("--features", type=int, default=16)
    parser.add_argument("--inside", type=float, default=0.7, help="share of edges that join nodes of one class")
    parser.add_argument("--noise", type=float, default=1.0, help="s.d. of each feature; the signal has length 1")
    parser.add_argument(
        "--train-share", type=float, default=0.25, help="of the nodes; a tenth validates, the rest tests"
    )
    parser.add_argument("--hops", type=int, default=1)
    parser.add_argument("--steps", type=int, default=2, help="of the random walks")
    parser.add_argument("--blocks", type=int, default=2)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--sampling", choices=("neighbours", "parts"), default="neighbours")
    parser.add_argument("--batch-nodes", type=int, default=8192)
    parser.add_argument("--fanout", type=int, default=8)
    parser.add_argument("--parts", type=int, default=200)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--learning-rate", type=float, default=5e-3)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--precision", default="32")
    return parser.parse_args()


def block_model(options: argparse.Namespace) -> PackedDataset:
    """Drawn with seed 0 on the device of the run, returned on the host; every step is one operation on all edges."""
    device = "cuda" if options.device != "cpu" and torch.cuda.is_available() else "cpu"
    generator = torch.Generator(device).manual_seed(0)
    nodes, edges, classes = options.nodes, options.edges, options.classes

    def random(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=generator, device=device)

    y = (torch.arange(nodes, device=device) % classes)[torch.argsort(random(nodes), stable=True)]
    by_class = torch.argsort(y, stable=True)
    count = torch.bincount(y, minlength=classes)
    first = (random(edges) * nodes).long().clamp(max=nodes - 1)
    own = y[first]
    same = by_class[
        (count.cumsum(0) - count)[own] + (random(edges) * count[own]).long().clamp(max=int(count.min()) - 1)
    ]
    second = torch.where(random(edges) < options.inside, same, (random(edges) * nodes).long().clamp(max=nodes - 1))
    one_way = torch.stack([first, second])[:, first != second]
    directions = torch.nn.functional.normalize(
        torch.randn(classes, options.features, generator=generator, device=device), dim=1
    )
    x = directions[y] + options.noise * torch.randn(nodes, options.features, generator=generator, device=device)
    share = random(nodes)
    split = torch.where(share < options.train_share, 0, torch.where(share < options.train_share + 0.1, 1, 2))
    arrays = {
        "num_nodes": torch.tensor([nodes]),
        "num_edges": torch.tensor([2 * one_way.shape[1]]),
        "edge_index": torch.cat([one_way, one_way.flip(0)], dim=1).int(),
        "x": x,
        "y": y,
        "node_split": split.to(torch.int8),
    }
    return from_arrays({name: value.cpu() for name, value in arrays.items()})


def recipe_of(options: argparse.Namespace) -> Recipe:
    model = CKGCNRecipe(
        width=options.width,
        blocks=options.blocks,
        node=AttributeRecipe("linear", (options.features,)),
        edge=AttributeRecipe("constant"),
        head=HeadRecipe("pyramid", "none", layers=2, outputs=options.classes),
        kernel=KernelRecipe(blocks=1),
        steps=options.steps,
        support=options.hops,
    )
    sampling = SamplingRecipe(
        options.sampling, batch_nodes=options.batch_nodes, fanouts=(options.fanout,), parts=options.parts
    )
    training = TrainingRecipe(
        "cross_entropy",
        "accuracy",
        epochs=options.epochs,
        warmup_epochs=0,
        batch_size=1,
        learning_rate=options.learning_rate,
        sampling=sampling,
    )
    return Recipe("large-graph", DataRecipe("large-graph"), model, training)


class Clock(Silence):
    """When the epochs of a run began and ended."""

    def __init__(self) -> None:
        self.begin = self.first_epoch = time.perf_counter()
        self.ends: list[float] = []

    def start(self, run: Any, first_epoch: int) -> None:
        self.first_epoch = time.perf_counter()

    def epoch(self, epoch: Epoch) -> None:
        self.ends.append(time.perf_counter())
        print_progress(f"epoch {epoch.epoch}: {epoch.seconds:.1f} s, loss {epoch.train_loss:.4f}, val {epoch.val:.4f}")

    def evaluations(self, epochs: list[Epoch]) -> list[float]:
        """Seconds of each evaluation: what an epoch took beyond its training."""
        starts = [self.first_epoch, *self.ends]
        return [end - start - epoch.seconds for start, end, epoch in zip(starts, self.ends, epochs, strict=False)]


def print_progress(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    main()
