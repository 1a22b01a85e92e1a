"""The attention pass, and all blocks of GRIT as one pass, against `nn.grit` in float64: outputs, statistics and every
gradient, on random supports. Covers `ckgconv.backends.cuda.grit` and `ckgconv.backends.cuda.block_pass.grit`.
"""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import DEVICE, keep_mask, needs_triton, relative
from small_data import padded_and_plain
from torch.utils import _pytree as pytree

from ckgconv import recipe
from ckgconv.backends import accelerate, why_not_fused
from ckgconv.backends.cuda.supports import grit_blocks_reason
from ckgconv.nn.grit import GRIT
from ckgconv.ops import dispatch

pytestmark = needs_triton


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)


def small(**changed) -> GRIT:
    """A GRIT in float64 with drawn norms, so that no gradient vanishes by chance."""
    values = {"width": 16, "blocks": 2, "heads": 4, "steps": 4, "node_steps": 5, "attention_dropout": 0.0}
    torch.manual_seed(0)
    model = GRIT(replace(recipe("zinc-grit").model, **values | changed)).double()
    for name, parameter in model.named_parameters():
        if "norm" in name:
            torch.nn.init.normal_(parameter, 1.0 if name.endswith("scale") else 0.0, 0.2)
    return model


def run(model, data, dtype, fused=False):
    """Predictions, gradients and statistics after a training step."""
    each = copy.deepcopy(model).to(dtype)
    batch = data.clone().to(DEVICE) if fused else data
    each = accelerate(each, DEVICE) if fused else each
    prediction = each(batch)
    prediction.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in each.named_parameters()}
    return {"prediction": prediction, **gradients, **dict(each.named_buffers())}


def check(model, data):
    """The pass is as near to float64 as the plain module in float32: near 0 the root magnifies any rounding."""
    exact, plain, fused = (
        run(model, data, *how) for how in ((torch.float64,), (torch.float32,), (torch.float32, True))
    )
    for name, expected in exact.items():
        if expected is None:
            assert fused[name] is None, name
        else:
            assert relative(fused[name], expected) < 1e-4 + 4 * relative(plain[name], expected), name


@pytest.mark.parametrize(("width", "heads", "support"), [(16, 4, "global"), (12, 4, 1), (20, 1, 3)])
def test_the_pass_computes_what_the_module_does(width, heads, support):
    model = small(width=width, heads=heads, support=support)
    assert why_not_fused(model, DEVICE) is None
    data = molecules(5, 1, 9, 34)
    h = torch.empty(data.num_nodes, width, device=DEVICE)
    assert grit_blocks_reason(model.blocks, h, model.prepare(data)) is None
    check(model, data)


def test_blocks_are_one_pass_where_nothing_is_dropped():
    model, h = small(dropout=0.1), torch.empty(6, 16, device=DEVICE)
    batch = model.prepare(molecules(5, 1))
    assert "dropped" in (grit_blocks_reason(model.blocks, h, batch) or "")
    assert "evaluation" in (grit_blocks_reason(small().eval().blocks, h, batch) or "")


def test_masks_are_those_of_the_module(monkeypatch):
    model, data = small(width=16, heads=16, support=2, attention_dropout=0.3, dropout=0.2), molecules(5, 8)
    pairs, seeds = model.prepare(data).pairs.num_pairs, torch.tensor([[11], [12], [13], [14]])
    asked = []

    def on_weights(values, probability, training):
        number = sum(each == "weights" for each in asked)
        asked.append("weights")
        return values * keep_mask(int(seeds[2 * number]), pairs, 16, probability).to(values)

    def on_states(values, probability, training):
        if values.shape[0] != pairs:
            return values
        number = sum(each == "states" for each in asked)
        asked.append("states")
        return values * keep_mask(int(seeds[2 * number + 1]), pairs, 16, probability).to(values)

    monkeypatch.setattr("ckgconv.nn.attention.dropout", on_weights)
    monkeypatch.setattr("ckgconv.nn.grit.dropout", on_states)
    monkeypatch.setattr("ckgconv.backends.cuda.grit.draw_seeds", lambda device, count: seeds.to(device))
    exact = run(model, data, torch.float64)
    fused = run(model, data, torch.float32, fused=True)
    for name, expected in exact.items():
        if expected is not None:
            assert relative(fused[name], expected) < 1e-3, name
    assert asked == ["weights", "states"] * 2


@pytest.mark.parametrize("support", ["global", 2])
def test_padding_is_neither_read_nor_written(support):
    model = small(support=support).float()
    batches = padded_and_plain(model, torch.tensor([2, 0, 3]))
    wide, batch = pytree.tree_map_only(torch.Tensor, lambda value: value.to(DEVICE), batches)
    accelerate(model, DEVICE)
    torch.testing.assert_close(model(wide)[:3], model(batch), rtol=0, atol=1e-5)
    model(wide)[:3].sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())
    model.eval()
    with torch.no_grad():
        torch.testing.assert_close(model(wide)[:3], model(batch), rtol=0, atol=1e-5)


def test_evaluation_uses_running_statistics():
    model, data = small(blocks=2).eval(), molecules(5, 8)
    expected = model(data)
    with torch.no_grad():
        found = accelerate(copy.deepcopy(model).float(), DEVICE)(data.clone().to(DEVICE))
    torch.testing.assert_close(found.double().cpu(), expected, rtol=0, atol=1e-5)


@pytest.mark.usefixtures("bfloat16")
def test_autocast_is_near():
    model, data = small(blocks=2, width=16), molecules(5, 8)
    expected = run(model, data, torch.float64)
    with torch.autocast(DEVICE, torch.bfloat16):
        found = run(model, data, torch.float32, fused=True)
    assert relative(found["prediction"], expected["prediction"]) < 0.05
    names = [name for name, each in expected.items() if each is not None and "blocks.0" in name]
    assert sum(relative(found[name], expected[name]) > 0.1 for name in names) == 0


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_small_gradients_do_not_vanish_in_16_bits(dropout, monkeypatch):
    """2⁻²⁴ times the loss has 2⁻²⁴ times the gradient, in blocks that are one pass and one by one."""
    seeds = torch.arange(4).view(4, 1)
    monkeypatch.setattr("ckgconv.backends.cuda.grit.draw_seeds", lambda device, count: seeds.to(device))
    monkeypatch.setattr("ckgconv.nn.grit.dropout", lambda values, probability, training: values)
    model, data, found = small(dropout=dropout).float(), molecules(5, 8).to(DEVICE), []
    for factor in (1.0, 2.0**-24):
        each = accelerate(copy.deepcopy(model), DEVICE)
        with torch.autocast(DEVICE, torch.bfloat16):
            prediction = each(data.clone())
        (factor * prediction.float().sum()).backward()
        found.append(each.pair_position.projection.weight.grad / factor)
    assert found[0].abs().max() > 0
    assert relative(found[1], found[0]) < 1e-3


@pytest.mark.usefixtures("double")
def test_the_default_dtype_does_not_matter():
    check(small(), molecules(5, 1, 9))


def test_what_the_pass_does_not_compute_runs_as_the_module(monkeypatch):
    assert "width 72" in why_not_fused(small(width=72, heads=4), DEVICE)
    assert "clamped" in why_not_fused(small(clamp=100.0), DEVICE)
    model, data = small(blocks=2).float().eval(), molecules(5, 8)
    monkeypatch.setattr("ckgconv.backends.cuda.grit.attended", None)
    accelerate(copy.deepcopy(model), DEVICE)(data.clone().to(DEVICE)).sum().backward()
