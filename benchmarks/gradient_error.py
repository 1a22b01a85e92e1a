"""How far gradients in each precision are from float64, at the weights of a run and without dropout.

    python benchmarks/gradient_error.py RUN [--batches 20] [--precisions bf16 tf32 32]

‖g - g₆₄‖ / ‖g₆₄‖ of the gradient of a training batch by all parameters, the median over batches; next to it, the
distance between gradients of different batches, which training averages out anyway. What does not average out is
systematic: "along", the mean of ⟨g - g₆₄, g₆₄⟩ / ‖g₆₄‖², which is negative where gradients are too short, and "agree",
the mean cosine between the errors of two batches. Passes are fused where the device has them; float64 is plain torch.
"""

import argparse
import json
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor

from ckgconv import open_run
from ckgconv.engine.batches import training_batches
from ckgconv.engine.learner import Learner
from ckgconv.engine.machine import commit, device_name
from ckgconv.engine.samples import eager_sample
from ckgconv.engine.step import Part, training_step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--precisions", nargs="+", default=["bf16", "tf32", "32"])
    parser.add_argument("--device", default="auto")
    options = parser.parse_args()
    exact = gradients(options.run, "64", options.device, options.batches)
    found = {"between batches": median([distance(one, other) for one, other in pairwise(exact)])}
    for precision in options.precisions:
        rounded = gradients(options.run, precision, options.device, options.batches)
        errors = [one - other for one, other in zip(rounded, exact, strict=True)]
        found[precision] = median([distance(one, other) for one, other in zip(rounded, exact, strict=True)])
        along = [float(error @ other / (other @ other)) for error, other in zip(errors, exact, strict=True)]
        found[f"{precision} along"] = sum(along) / len(along)
        found[f"{precision} agree"] = agreement(errors)
    print(json.dumps(found | {"run": str(options.run), "device": device_name(exact[0].device), "commit": commit()}))


def agreement(errors: list[Tensor]) -> float:
    """The mean cosine between two of them."""
    directions = torch.stack([error / error.norm() for error in errors])
    count = len(errors)
    return float((directions @ directions.T).sum() - count) / max(count * (count - 1), 1)


def gradients(folder: Path, precision: str, device: str, batches: int) -> list[Tensor]:
    """The gradient of each of the first batches, as a vector in float64."""
    learner = open_run(folder, device, precision).learner
    for module in learner.model.modules():
        for name in ("dropout", "mlp_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
    torch.manual_seed(0)  # of the batches, which are the same for all precisions
    rows = list(training_batches(learner.data.train, learner.recipe.batch_size, 0, 1))[:batches]
    return [gradient(learner, numbers) for numbers in rows]


def gradient(learner: Learner, numbers: Tensor) -> Tensor:
    learner.model.train()
    training_step(learner, eager_sample(learner, numbers, "train"), lambda loss: None, last=Part.BACKWARD)
    found = [torch.zeros_like(each) if each.grad is None else each.grad for each in learner.model.parameters()]
    vector = torch.cat([each.double().flatten() for each in found])
    learner.model.zero_grad()
    return vector


def distance(one: Tensor, other: Tensor) -> float:
    return float((one - other).norm() / other.norm())


def median(values: list[float]) -> float:
    return round(float(torch.tensor(values).median()), 5)


if __name__ == "__main__":
    main()
