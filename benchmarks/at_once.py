"""Training several seeds at once on one GPU, three ways: seconds per seed and epoch.

    python benchmarks/at_once.py zinc --precision bf16 --networks 1 2 4 8

processes  a process for each, as `ckgconv campaign --at-once N`; on a GPU under the CUDA multi-process service
streams    one process, a thread and a CUDA stream for each, which replay captured steps of their own
stacked    one captured step of plain torch with all weights stacked (`stacked`); batches are copied, not assembled

One network alone is as fast as runs one after the other. Only training steps are timed, after some that compile and
capture; batches are drawn before. Streams share torch's random numbers, so masks of dropout are no one's own: that
changes no time, and would have to be cured before training so. On a CPU, where steps are eager, in a reduced form:

    python benchmarks/at_once.py zinc --device cpu --networks 1 2 --limit 64 --epochs 1
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial, reduce

import torch
from torch import Tensor

from ckgconv import recipe
from ckgconv.campaigns.service import shared_gpu
from ckgconv.checks import require
from ckgconv.data import load
from ckgconv.engine.epoch import eager_step, shared_source
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import device_name, peak_memory_mb
from ckgconv.engine.replay import Replay, padded_table
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import training_step
from ckgconv.nn.models import build_model
from ckgconv.recipes import with_value

WAYS = ("processes", "streams", "stacked")
READY, GO = "ready", "go\n"
Steps = Callable[[], object]


def main() -> None:
    options = parse(sys.argv[1:])
    if options.work:
        work(options)
        return
    for networks in options.networks:
        for way in options.ways:
            print(json.dumps({"way": way, "networks": networks, **timed(way, networks, options)}), flush=True)


def parse(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--networks", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="bf16", help="32, tf32, bf16 or 64")
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--limit", type=int, help="the first graphs of each split")
    parser.add_argument("--set", nargs="+", default=[], help="as of `ckgconv train`")
    parser.add_argument("--work", choices=WAYS, help="of a process that this script starts: prepare, wait, train")
    return parser.parse_args(words)


def timed(way: str, networks: int, options: argparse.Namespace) -> dict[str, object]:
    """Seconds per network and epoch, or why there are none."""
    several = networks if way == "processes" else 1
    with shared_gpu(options.device, several, lambda line: print(line, file=sys.stderr)):
        command = [sys.executable, __file__, *sys.argv[1:], "--networks", str(networks // several), "--work", way]
        started = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(several)
        ]
        said = [heard(each) for each in started]
        if said != [READY] * several:
            for each in started:
                each.communicate()
            return {"failed": "a process ended before its first step; what it printed is above"}
        start = time.perf_counter()
        for each in started:
            assert each.stdin is not None
            each.stdin.write(GO)
            each.stdin.flush()
        ends = [json.loads(heard(each) or "null") for each in started]
        seconds = time.perf_counter() - start
        for each in started:
            each.communicate()
    if None in ends:
        return {"failed": "a process ended while it trained; what it printed is above"}
    each_s = round(seconds / options.epochs / networks, 4)
    memory = [each["memory_mb"] for each in ends]
    return {"network_epoch_s": each_s, "memory_mb": sum(memory) if all(memory) else None, "device": ends[0]["device"]}


def heard(process: "subprocess.Popen[str]") -> str:
    """A line that a process prints; empty once it has ended."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


def work(options: argparse.Namespace) -> None:
    """Prepare, say so, and train when told to."""
    (networks,) = options.networks
    steps = PREPARED[options.work](options, networks)
    print(READY, flush=True)
    if sys.stdin.readline() != GO:
        return
    steps()
    fabric = make_fabric(options.device, options.precision)
    report = {"memory_mb": peak_memory_mb(fabric.device), "device": device_name(fabric.device)}
    print(json.dumps(report), flush=True)


def learners_of(options: argparse.Namespace, networks: int) -> list[Learner]:
    """That many networks on the same data."""
    changes = [*options.set, *([] if options.limit is None else [f"data.limit={options.limit}"])]
    chosen = reduce(with_value, changes, recipe(options.recipe))
    fabric, data = make_fabric(options.device, options.precision), load(chosen.data, None)
    found = []
    for seed in range(networks):
        torch.manual_seed(seed)
        learner = make_learner(fabric, build_model(chosen.model), data, chosen)
        learner.schedule.begin(chosen.training.warmup_epochs)
        found.append(learner)
    return found


def table_of(learner: Learner, epochs: int) -> Tensor:
    """The batches [S, B] of that many epochs."""
    graphs = learner.data.train.cpu()
    drawn = [graphs[torch.randperm(graphs.shape[0])] for _ in range(epochs)]
    return torch.cat([padded_table(each, learner.recipe.batch_size) for each in drawn])


def steps_of(learner: Learner, epochs: int) -> Steps:
    """All steps of a learner, which have run once."""
    learner.wrapped.train()
    table = table_of(learner, epochs)
    if learner.captures:
        replay = Replay(shared_source(learner), table, "train", partial(training_step, learner))
        replay.run(table).tolist()
        return lambda: replay.run(table).tolist()
    eager_step(learner, table[0][table[0] >= 0])
    return lambda: [eager_step(learner, row[row >= 0]) for row in table]


def alone(options: argparse.Namespace, networks: int) -> Steps:
    """One network, whose process is one of several."""
    (learner,) = learners_of(options, networks)
    return steps_of(learner, options.epochs)


def streams(options: argparse.Namespace, networks: int) -> Steps:
    """A thread and a stream for each network."""
    # In float64 a step changes torch's default dtype, which all threads share.
    require(options.precision != "64", "--ways streams cannot be timed in float64: choose another --precision.")
    each = [steps_of(learner, options.epochs) for learner in learners_of(options, networks)]

    def on_a_stream(steps: Steps) -> object:
        with torch.cuda.stream(torch.cuda.Stream()) if torch.cuda.is_available() else nullcontext():
            return steps()

    def together() -> list[object]:
        with ThreadPoolExecutor(networks) as pool:
            return list(pool.map(on_a_stream, each))

    return together


def stacked(options: argparse.Namespace, networks: int) -> Steps:
    """All networks in one step."""
    from stacked import StackedStep

    learners = learners_of(options, networks)
    torch.use_deterministic_algorithms(False)  # as captured steps do, whose other sums have a fixed order
    tables = [table_of(learner, options.epochs) for learner in learners]
    together = StackedStep(learners, tables)
    step = together.captured()
    together.run(1, step)
    return partial(together.run, len(tables[0]), step)


PREPARED: dict[str, Callable[[argparse.Namespace, int], Steps]] = {
    "processes": alone,
    "streams": streams,
    "stacked": stacked,
}

if __name__ == "__main__":
    main()
