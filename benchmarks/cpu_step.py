"""One training step and one evaluation of the ZINC recipe on the CPU, coordinates included, in milliseconds per graph.

    python benchmarks/cpu_step.py [--threads 2] [--batches 20] [--batch-size 32]

Medians over different batches: on a shared machine single times are disturbed.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor

from ckgconv import CKGCN, recipe
from ckgconv.data import zinc
from ckgconv.engine.epoch import eager_step, predict_batch
from ckgconv.engine.learner import Learner
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric

WARM_UP = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch-size", type=int, default=32)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    chosen = recipe("zinc")
    learner = make_learner(make_fabric("cpu", "32"), CKGCN.from_recipe(chosen), zinc(), chosen)
    order = learner.data.train[torch.randperm(len(learner.data.train))]
    batches = order.split(options.batch_size)[: options.batches + WARM_UP]
    learner.model.train()
    training = measured(lambda graphs: eager_step(learner, graphs), batches)
    evaluation = measured(lambda graphs: evaluated(learner, graphs), batches)
    report = {
        "recipe": "zinc",
        "batch": options.batch_size,
        "batches": len(batches) - WARM_UP,
        "threads": options.threads,
        "torch": torch.__version__,
        "training_ms_per_graph": training,
        "evaluation_ms_per_graph": evaluation,
    }
    print(json.dumps(report, indent=1))


def evaluated(learner: Learner, graphs: Tensor) -> Tensor:
    return predict_batch(learner, learner.batch(graphs))


def measured(step: Callable[[Tensor], object], batches: tuple[Tensor, ...]) -> dict[str, float]:
    """Median and quartiles of the time per graph."""
    times = []
    for graphs in batches:
        start = time.perf_counter()
        step(graphs)
        times.append(1e3 * (time.perf_counter() - start) / len(graphs))
    lower, median, upper = statistics.quantiles(times[WARM_UP:], n=4)
    return {"median": round(median, 2), "lower_quartile": round(lower, 2), "upper_quartile": round(upper, 2)}


if __name__ == "__main__":
    main()
