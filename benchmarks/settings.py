"""Settings of one recipe compared by validation alone, over seeds or folds; no test metric is computed.

    python benchmarks/settings.py nodes-homophilous --seeds 0 1 2 3 4 --try training.select=loss --try model.order=4
    python benchmarks/settings.py mutag --folds 10 --data-dir data --try training.select=metric_then_loss

Each `--try` is one setting, several values with commas between; the recipe as it is comes first unless --changed-only
is given. Of each setting, mean and s.d. over its runs of

    val        validation metric at the chosen epoch: the best of many, so it flatters noisy curves
    late       validation metric of the last quarter of the epochs, averaged: nothing chose it
    averaged   validation metric of the mean of the weights over the last quarter
    loss       least validation loss of an epoch; null where the setting does not compute it
"""

import argparse
import json
import time
from functools import reduce
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from ckgconv import recipe, train
from ckgconv.engine.folds import fold_recipe
from ckgconv.engine.record import Record
from ckgconv.engine.repeated import mean_and_deviation
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value


def trained(setting: Recipe, options: argparse.Namespace) -> list[Record]:
    """One run per seed, or per fold of each seed."""
    folds = range(options.folds) if options.folds else [None]
    return [
        train(
            setting if fold is None else fold_recipe(setting, options.folds, fold),
            seed,
            data=options.data_dir,
            device="cpu",
            test=False,
        ).record
        for seed in options.seeds
        for fold in folds
    ]


def late(record: Record) -> float:
    """Mean validation metric of the last quarter of the epochs."""
    return fmean(epoch.val for epoch in record.epochs[-max(1, len(record.epochs) // 4) :])


def found(records: list[Record]) -> dict[str, Any]:
    """What a setting's runs have in common."""
    losses = [[epoch.val_loss for epoch in record.epochs if epoch.val_loss is not None] for record in records]
    columns: dict[str, list[float | None]] = {
        "val": [record.best and record.best.val for record in records],
        "late": [late(record) for record in records],
        "averaged": [record.averaged and record.averaged.val for record in records],
        "epoch": [record.best and float(record.best.epoch + 1) for record in records],
        "loss": [min(each) if each else None for each in losses],
    }
    known = {name: values for name, values in columns.items() if None not in values}
    return {name: dict(vars(mean_and_deviation(values))) for name, values in known.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipe")
    parser.add_argument("--try", dest="tried", action="append", default=[], help="values, with commas between")
    parser.add_argument("--changed-only", action="store_true", help="leave out the recipe as it is")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--folds", type=int)
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for tried in [*([] if options.changed_only else [""]), *options.tried]:
        start = time.process_time()
        setting = reduce(with_value, filter(None, tried.split(",")), recipe(options.recipe))
        records = trained(setting, options)
        values = {"setting": tried or options.recipe, "runs": len(records), **found(records)}
        print(json.dumps({**values, "cpu_s": round(time.process_time() - start)}), flush=True)


if __name__ == "__main__":
    main()
