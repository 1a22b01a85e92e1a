"""Validation errors of trained weights by the statistics that their batch norms evaluate with.

    python benchmarks/norm_statistics.py RUN [--checkpoint 553] [--batches 60]

"running" are those that training has tracked; "mean" and "median" are taken, channel by channel, over the statistics of
random training batches at these weights, with dropout. Of a regression: the mean error, the median one, and the mean
without the ten largest. The best epoch of a run was chosen among running averages, which flatters them; the weights of
a checkpoint were not.
"""

import argparse
from pathlib import Path

import torch
from torch import Tensor

from ckgconv import open_run
from ckgconv.engine import checkpoint
from ckgconv.engine.batches import training_batches
from ckgconv.engine.epoch import split_predictions
from ckgconv.engine.learner import Learner
from ckgconv.engine.norm_statistics import BatchStatistics
from ckgconv.engine.samples import eager_sample


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--checkpoint", type=int, help="its number; by default the weights of the best epoch")
    parser.add_argument("--batches", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="of batches and dropout")
    parser.add_argument("--device", default="cpu")
    options = parser.parse_args()
    run = open_run(options.run, options.device)
    if options.checkpoint is not None:
        tensors, _ = checkpoint.load(options.run / f"checkpoints/{options.checkpoint:06d}")
        weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
        run.model.load_state_dict(weights)
    report("running", errors(run.learner))
    torch.manual_seed(options.seed)
    statistics = collected(run.learner, options.batches)
    rows = statistics.table[: options.batches]
    for name, chosen in (("mean", rows.mean(0)), ("median", rows.median(0).values)):
        parts = chosen.split([value.numel() for value in statistics.running])
        for value, part in zip(statistics.running, parts, strict=True):
            value.copy_(part.view_as(value))
        report(name, errors(run.learner))


@torch.no_grad()
def collected(learner: Learner, batches: int) -> BatchStatistics:
    """Statistics of random training batches."""
    statistics = BatchStatistics(learner.model)
    learner.model.train()
    graphs = list(training_batches(learner.data.train, learner.recipe.batch_size, 0, 1))[:batches]
    for numbers in graphs:
        learner.forward(eager_sample(learner, numbers, "train").batch)
        statistics.record()
    return statistics


@torch.no_grad()
def errors(learner: Learner) -> Tensor:
    """|ŷ - y| of the validation split, largest first."""
    predicted, target = (torch.cat(parts) for parts in zip(*split_predictions(learner, "val"), strict=True))
    return (predicted.flatten() - target.flatten()).abs().sort(descending=True).values


def report(name: str, found: Tensor) -> None:
    print(f"{name:8} {found.mean():.4f}  median {found.median():.4f}  without the ten largest {found[10:].mean():.4f}")


if __name__ == "__main__":
    main()
