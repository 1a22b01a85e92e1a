"""A step of every model as on a GPU, on a padded batch in memory full of garbage: loss and gradients of plain torch.

Covers what no pass does alone: operations between the passes, and models that are not fused.
"""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative
from small_data import small_dataset
from small_models import TRAINED, awake, of_recipe, signed

from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import eager_sample, source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import Part, training_step
from ckgconv.nn.models import build_model

GRAPHS = torch.tensor([2, -1, 0])  # one of the batch is none


def learner_of(chosen, device, precision):
    torch.manual_seed(4)
    model = awake(build_model(chosen.model))
    model = model.double() if precision == "64" else model
    return make_learner(make_fabric(device, precision), model, small_dataset(chosen, most=8), chosen)


def stepped(learner, sample):
    """The loss before an update, and all gradients in one vector."""
    kept = []
    learner.model.train()
    training_step(learner, sample, kept.append, last=Part.BACKWARD)
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in learner.model.parameters()]
    return float(kept[0]), torch.cat([each.double().flatten() for each in gradients])


@needs_triton
@pytest.mark.parametrize("small", TRAINED)
def test_padding_is_without_effect(small, monkeypatch):
    chosen = of_recipe(small, batch_size=4)
    plain = learner_of(chosen, "cpu", "64")
    loss, expected = stepped(plain, eager_sample(plain, GRAPHS[GRAPHS >= 0], "train"))
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: device.type == torch.device(DEVICE).type)
    learner = learner_of(chosen, DEVICE, "32")
    if not learner.model.static:
        return
    source = source_of(learner)
    capacity = source.sizes.needed(torch.tensor([[1, 2, 3]]))
    sample = source.sample(learner.data, GRAPHS.to(learner.fabric.device), capacity, "train")
    found = stepped(learner, sample)
    if signed(small):  # the signs drawn for eigenvectors depend on the capacity
        assert found[1].isfinite().all()
        return
    assert found[0] == pytest.approx(loss, rel=1e-5)
    assert relative(found[1], expected) < 1e-4
