"""One training step of the ZINC recipe at batch 32 on the CPU: all kernels in one grouped call against one per layer.

Both compute the same numbers; steps alternate in one run, so that both see the same machine.

    python benchmarks/training_step.py [--threads 2] [--repeats 30]
"""

import argparse
import json
import statistics
import time

import torch
from torch import Tensor, nn

from ckgconv import CKGCN, recipe
from ckgconv.data import zinc
from ckgconv.engine.optim import clip_gradients, optimizer
from ckgconv.graphs import Pairs
from ckgconv.nn import Kernel, KernelValues
from ckgconv.tasks.losses import l1


class KernelPerLayer(nn.Module):
    """The same L kernels as L modules, each evaluated by a call of its own."""

    def __init__(self, grouped: Kernel) -> None:
        super().__init__()
        model = recipe("zinc").model
        self.kernels = nn.ModuleList(
            Kernel(model.width, model.width, mlp_dropout=model.kernel.mlp_dropout, kernel_dropout=model.kernel.dropout)
            for _ in range(grouped.layers)
        )
        for layer, kernel in enumerate(self.kernels):
            kernel.load_state_dict({name: value[layer : layer + 1] for name, value in grouped.state_dict().items()})

    def forward(self, pair_features: Tensor, pairs: Pairs) -> tuple[KernelValues, ...]:
        return tuple(kernel(pair_features, pairs)[0] for kernel in self.kernels)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=30)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    data = zinc()
    training = recipe("zinc").training
    models = {"grouped": CKGCN.from_recipe("zinc"), "one call per layer": CKGCN.from_recipe("zinc")}
    models["one call per layer"].load_state_dict(models["grouped"].state_dict())
    models["one call per layer"].kernel = KernelPerLayer(models["grouped"].kernel)
    assert_equal(models, data.batch(torch.arange(32)))
    optimisers = {name: optimizer(model, training) for name, model in models.items()}
    times: dict[str, list[float]] = {name: [] for name in models}
    batches = torch.randperm(10_000)[: 32 * (options.repeats + 2)].view(-1, 32)
    for repeat, numbers in enumerate(batches):
        batch = data.batch(numbers)
        # Each goes first in half of the repeats: the second finds warmer caches.
        for name, model in list(models.items())[:: 1 if repeat % 2 else -1]:
            start = time.perf_counter()
            optimisers[name].zero_grad()
            l1(model(batch), batch.y).backward()
            clip_gradients(model, training)
            optimisers[name].step()
            if repeat >= 2:
                times[name].append(time.perf_counter() - start)
    report = {
        "recipe": "zinc",
        "batch": 32,
        "threads": options.threads,
        "torch": torch.__version__,
        "step_ms": {name: round(1e3 * statistics.median(values), 1) for name, values in times.items()},
        # Pairs of the same batch, a moment apart: what a shared machine does to both cancels.
        "grouped_over_per_layer": round(
            statistics.median(one / other for one, other in zip(*times.values(), strict=True)), 3
        ),
    }
    print(json.dumps(report, indent=1))


@torch.no_grad()
def assert_equal(models: dict[str, CKGCN], batch: object) -> None:
    one, other = (model.eval()(batch) for model in models.values())
    torch.testing.assert_close(one, other)
    for model in models.values():
        model.train()


if __name__ == "__main__":
    main()
