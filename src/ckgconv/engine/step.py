"""One training step, for eager, captured and timed runs alike.

    forward → loss → backward → clip → update

The step is a generator that stops behind each part: an eager run exhausts it, a timed one looks at the clock in
between, and a captured one may leave it early.
"""

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Any

from torch import Tensor, nn

from ckgconv.backends.cuda.schedule import IN_ORDER, InOrder
from ckgconv.engine.learner import Learner
from ckgconv.engine.samples import Sample
from ckgconv.recipe import TrainingRecipe


class Part(StrEnum):
    """Of a training step, in order."""

    FORWARD = "forward"
    BACKWARD = "backward"
    UPDATE = "update"


Keep = Callable[[Tensor], None]


def step_parts(learner: Learner, sample: Sample, schedule: InOrder = IN_ORDER) -> Iterator[tuple[Part, Tensor]]:
    """The parts of a step as they are done, each with the loss of this process's share of the batch."""
    learner.optimizer.zero_grad(set_to_none=True)
    loss = learner.loss(learner.forward(sample.batch, schedule), sample.target)
    share = loss.detach()
    yield Part.FORWARD, share
    learner.backward(loss)
    yield Part.BACKWARD, share
    schedule.join()
    update(learner.model, learner.optimizer, learner.recipe, schedule)
    yield Part.UPDATE, share


def training_step(
    learner: Learner,
    sample: Sample,
    keep: Keep,
    schedule: InOrder = IN_ORDER,
    last: Part = Part.UPDATE,
) -> None:
    """A step up to its `last` part; `keep` receives the loss as soon as it is known."""
    for part, loss in step_parts(learner, sample, schedule):
        if part is Part.FORWARD:
            keep(loss)
        if part is last:
            return


def evaluation_step(learner: Learner, sample: Sample, keep: Keep, schedule: InOrder = IN_ORDER) -> None:
    """`keep` receives predictions [B, T] or [N, T]."""
    keep(learner.predicted(sample.batch, schedule))


def update(model: nn.Module, optimizer: Any, recipe: TrainingRecipe, schedule: InOrder = IN_ORDER) -> None:
    """Clip the gradients of a backward pass and move the parameters."""
    inner = getattr(optimizer, "optimizer", optimizer)
    clipped_step = getattr(inner, "clipped_step", None)
    if clipped_step is not None:  # an optimiser that does both at once
        clipped_step(schedule)
        return
    clip_gradients(model, recipe)
    optimizer.step()


def clip_gradients(model: nn.Module, recipe: TrainingRecipe) -> Tensor:
    """Scales gradients to at most the recipe's total norm, by min(1, clip/(norm + 10⁻⁶)); returns the norm before."""
    return nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
