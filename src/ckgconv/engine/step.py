"""One training step, the same for eager, captured and timed runs; and one evaluation step.

    forward → loss → backward → clip → update

A training step is a generator that yields after each part: a run exhausts it, a benchmark of eager steps reads the
clock in between, and one of captured steps stops early.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from torch import Tensor, nn

from ckgconv.backends.cuda.streams import IN_ORDER, Streams
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample
from ckgconv.recipe import TrainingRecipe


class Part(StrEnum):
    """The parts of a training step, in order."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


Keep = Callable[[Tensor], None]


def step_parts(learner: Learner, sample: Sample, streams: Streams = IN_ORDER) -> Iterator[tuple[Part, Tensor]]:
    """Run a step; yields each part when it is done, with this process's share of the loss."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = learner.objective(sample.batch, sample.target, streams, sample.weight)
    share = loss.detach()
    yield Part.FORWARD, share
    learner.backward(loss)
    yield Part.BACKWARD, share
    streams.join()
    update(learner.model, learner.optimizer, learner.recipe, streams)
    if learner.average is not None:
        learner.average.update()
    if learner.statistics is not None:
        learner.statistics.record()
    yield Part.UPDATE, share


def training_step(
    learner: Learner,
    sample: Sample,
    keep: Keep,
    streams: Streams = IN_ORDER,
    last: Part = Part.UPDATE,
) -> None:
    """Train on a sample, up to the `last` part of the step; `keep` receives the loss as soon as it is computed."""
    for part, loss in step_parts(learner, sample, streams):
        if part is Part.FORWARD:
            keep(loss)
        if part is last:
            return


def evaluation_step(learner: Learner, sample: Sample, keep: Keep, streams: Streams = IN_ORDER) -> None:
    """Predict a sample; `keep` receives predictions [B, T] or [N, T] in the units of the data."""
    keep(learner.predicted(sample.batch, streams))


def update(model: nn.Module, optimizer: Any, recipe: TrainingRecipe, streams: Streams = IN_ORDER) -> None:
    """Clip the gradients and update the parameters."""
    inner = getattr(optimizer, "optimizer", optimizer)
    clipped_step = getattr(inner, "clipped_step", None)
    if clipped_step is not None:  # an optimiser that clips the gradients itself
        clipped_step(streams)
        return
    clip_gradients(model, recipe)
    optimizer.step()


def clip_gradients(model: nn.Module, recipe: TrainingRecipe) -> Tensor:
    """Scale all gradients by min(1, clip/(norm + 10⁻⁶)) with clip = `clip_norm`; returns their norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
