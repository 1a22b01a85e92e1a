"""Launches of a training step on a GPU, counted on a CPU: forward, loss and backward on a batch of static capacity.

    python benchmarks/launches.py zinc-gine-plus [zinc-gps …] [--set model.encoding=rrwp_cycles] [--rows 20]

Nothing is timed. Torch operations that are no views and allocate more than memory count as one launch each, though some
of torch's, such as a sort, are several; Triton kernels of the step are counted and not run, so its values mean nothing.
Apart from these: `assembly`, that of the next batch, which is concurrent. Not counted: the update, a few launches for
any model.
"""

import argparse
import json
import os
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"  # before any Triton kernel is defined

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from triton.runtime import interpreter

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.data import load
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.ops import dispatch, dropout
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value

# Memory and scalars of the host. Dropout is one launch on a GPU, and here three operations, of which one counts.
FREE = ("empty", "new_empty", "detach", "alias", "_unsafe_view", "set_", "lift_fresh", "scalar_tensor")
FREE += ("_local_scalar_dense", "bernoulli_", "div_")


class Counted(TorchDispatchMode):
    """Counts launches by name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if not function.is_view and not function._schema.name.removeprefix("aten::").startswith(FREE):
            self.found[str(function)] += 1
        return function(*args, **(kwargs or {}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recipes", nargs="+")
    parser.add_argument("--set", nargs="+", default=[], help="as of `ckgconv train`")
    parser.add_argument("--rows", type=int, default=0, help="kinds of launches to print")
    options = parser.parse_args()
    # As on a GPU: operations dispatch to Triton, and dropout is one launch.
    dispatch.runs_triton = lambda device: True
    dropout.packed = dropout.naive  # type: ignore[attr-defined]
    for name in options.recipes:
        step, assembly = counted(reduce(with_value, options.set, recipe(name)))
        triton = sum(count for kind, count in step.items() if not kind.startswith("aten."))
        print(json.dumps({"recipe": name, "launches": step.total(), "triton": triton, "assembly": assembly.total()}))
        for kind, count in step.most_common(options.rows):
            print(f"{count:6d}  {kind}")


def counted(chosen: Recipe) -> tuple[Counter[str], Counter[str]]:
    """Launches of a step of a recipe in bf16, and of the assembly of its batch."""
    chosen = replace(chosen, data=replace(chosen.data, limit=3 * chosen.training.batch_size))
    torch.manual_seed(0)
    dispatch.runs_triton = lambda device: False  # while pairs are stored
    learner = make_learner(make_fabric("cpu", "bf16"), build_model(chosen.model), load(chosen.data, None), chosen)
    numbers = learner.data.train[: chosen.training.batch_size]
    source = source_of(learner)
    capacity = source.sizes.needed(numbers.unsqueeze(0))
    dispatch.runs_triton = lambda device: True
    accelerate(learner.model)
    learner.model.train()
    samples = []
    assembly = launches_of(lambda: samples.append(source.sample(learner.data, numbers, capacity, "train")), run=True)
    (sample,) = samples

    def step() -> None:
        learner.backward(learner.loss(learner.forward(sample.batch), sample.target))

    return launches_of(step, run=False), assembly


def launches_of(work: Callable[[], object], run: bool) -> Counter[str]:
    """Launches by name; Triton kernels are only counted where they are not `run`."""
    mode, launch = Counted(), interpreter.GridExecutor.__call__

    def count(self: Any, *args: Any, **kwargs: Any) -> None:
        mode.found[self.fn.__name__] += 1
        if run:
            with _disable_current_modes():  # the interpreter itself copies tensors
                launch(self, *args, **kwargs)

    interpreter.GridExecutor.__call__ = count
    try:
        with mode:
            work()
    finally:
        interpreter.GridExecutor.__call__ = launch
    return mode.found


if __name__ == "__main__":
    main()
