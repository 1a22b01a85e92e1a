"""Evaluates a split of one graph in two processes, of which one has none; started by test_parallel.py with torchrun."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_data import small_dataset

from ckgconv import recipe
from ckgconv.engine.epoch import evaluate
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS

fabric = make_fabric("cpu", "64")
for name in ("zinc", "mnist", "pattern", "peptides-func"):
    chosen = recipe(name)
    kind = LOSSES[chosen.training.loss].targets
    chosen = replace(chosen, model=replace(chosen.model, width=4, blocks=1, steps=2))
    data = small_dataset(chosen)
    data = replace(data, val=data.val[:1])
    for metric in (metric for metric, entry in METRICS.items() if entry.targets == kind):
        judged = replace(chosen, training=replace(chosen.training, metric=metric))
        fabric.seed_everything(0, verbose=False)
        learner = make_learner(fabric, build_model(chosen.model).double(), data, judged)
        value = evaluate(learner, "val")
        if fabric.is_global_zero:
            print(name, metric, f"{value:.9f}")
