"""The block pass against `nn.message_passing` in float64: predictions, statistics and every gradient."""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import DEVICE, keep_mask, needs_triton, relative
from small_data import padded_and_plain
from torch.utils import _pytree as pytree

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.backends.cuda.supports import message_blocks_reason
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.ops import dispatch

pytestmark = needs_triton
SEED = 77
CASES = [
    ("zinc-gine-plus", {"width": 12}),
    ("zinc-gine-plus", {"width": 72, "dropout": 0.3}),
    ("zinc-gine-plus", {"width": 16, "blocks": 1, "dropout": 0.2}),
]


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)
    # Memory that no launch has written holds NaN.
    torch.use_deterministic_algorithms(True)
    yield
    torch.use_deterministic_algorithms(False)


def drawn(name, changed) -> MessagePassing:
    """A network whose norms and biases are not those it starts with."""
    values = {"blocks": 2, "dropout": 0.0, **changed}
    torch.manual_seed(0)
    model = MessagePassing(replace(recipe(name).model, **values)).double()
    for part, parameter in model.named_parameters():
        if part.endswith(("scale", "shift", "bias")):
            torch.nn.init.normal_(parameter, float(part.endswith("scale")), 0.2)
    return model


def stepped(model, batch):
    prediction = model(batch)
    prediction.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"prediction": prediction, **gradients, **dict(model.named_buffers())}


def with_masks(monkeypatch):
    """Plain dropout by the masks of the Triton kernels, in the order in which modules ask for them."""
    asked = []

    def handed(values, probability, training):
        asked.append(probability)
        if not probability:
            return values
        return values * keep_mask(SEED + len(asked) - 1, *values.shape, probability).to(values)

    for module in ("message_passing", "gated_gcn", "node_attention"):
        monkeypatch.setattr(f"ckgconv.nn.{module}.dropout", handed)
    seeds = torch.full((1, 1), SEED, device=DEVICE)
    monkeypatch.setattr("ckgconv.backends.cuda.message_passing.draw_seeds", lambda *_: seeds)


@pytest.mark.parametrize(("name", "changed"), CASES)
def test_the_pass_computes_what_the_module_does(name, changed, monkeypatch):
    with_masks(monkeypatch)
    model, data = drawn(name, changed), molecules(6, 1, 9)
    fused = accelerate(copy.deepcopy(model).float(), DEVICE)
    assert message_blocks_reason(fused, fused.prepare(data.clone().to(DEVICE))) is None
    expected, found = stepped(model, data), stepped(fused, data.clone().to(DEVICE))
    for part, value in expected.items():
        if value is None:
            assert found[part] is None, part
        else:
            assert relative(found[part], value) < 1e-4, part


@pytest.mark.parametrize(("name", "changed"), CASES[:1])
def test_padding_changes_nothing(name, changed):
    model = drawn(name, changed).float()
    batches = padded_and_plain(model, torch.tensor([2, 0, 3]))
    wide, batch = pytree.tree_map_only(torch.Tensor, lambda value: value.to(DEVICE), batches)
    results = []
    for each in (wide, batch):
        fused = accelerate(copy.deepcopy(model), DEVICE)
        assert message_blocks_reason(fused, each) is None
        prediction = fused(each)[:3]
        prediction.square().sum().backward()
        gradients = {part: parameter.grad for part, parameter in fused.named_parameters()}
        results.append({"prediction": prediction, **gradients, **dict(fused.named_buffers())})
    for part, value in results[1].items():
        if value is not None:
            torch.testing.assert_close(results[0][part], value, rtol=1e-4, atol=1e-4, msg=part)


def test_other_blocks_run_one_after_the_other():
    batch = molecules(2, 1, 9)
    for name, changed in [("zinc-gine-plus", {"ffn": False}), ("zinc-gine-plus", {"activation": "gelu"})]:
        model = drawn(name, {"width": 12, **changed}).float()
        assert message_blocks_reason(model, model.prepare(batch)) is not None
    model = drawn("zinc-gine-plus", {"width": 12}).float()
    assert "evaluation" in (message_blocks_reason(model.eval(), model.prepare(batch)) or "")
