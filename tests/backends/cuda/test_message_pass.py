"""The message pass against `nn.message_passing` in float64: predictions, statistics and every gradient.

Covers `ckgconv.ops.rows` and `ckgconv.backends.cuda.message_passing`.
"""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import DEVICE, needs_triton, relative
from small_data import padded_and_plain
from torch.utils import _pytree as pytree

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.backends.cuda.batch import AssembledModel
from ckgconv.backends.cuda.message_pass import launch
from ckgconv.backends.cuda.message_passing import SortedBatch
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.ops import dispatch
from ckgconv.ops.rows import gather_rows, order_of

pytestmark = needs_triton
CASES = [
    ("zinc-gine-plus", {}),
    ("zinc-gcn-plus", {}),
    ("zinc-gatedgcn-plus", {}),
    ("zinc-gps", {"attention_heads": 2, "encoding_channels": 4}),
    ("zinc-gatedgcn", {"residual": False}),
]


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)


def small(name, changed) -> MessagePassing:
    values = {"width": 12, "blocks": 2, "dropout": 0.0, "attention_dropout": 0.0}
    torch.manual_seed(0)
    return MessagePassing(replace(recipe(name).model, **values | changed)).double()


def stepped(model, batch):
    prediction = model(batch)
    prediction.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"prediction": prediction, **gradients, **dict(model.named_buffers())}


@pytest.mark.parametrize(("name", "changed"), CASES)
def test_the_pass_computes_what_the_module_does(name, changed, monkeypatch):
    model, data = small(name, changed), molecules(5, 1, 9)
    expected = stepped(copy.deepcopy(model), data)
    fused = accelerate(copy.deepcopy(model).float(), DEVICE)
    monkeypatch.setattr("ckgconv.backends.cuda.message_passing.message_blocks_reason", lambda *_: "Block after block.")
    ran = []
    for function in ("rectified_messages", "gated_messages"):
        original = getattr(launch, function)
        monkeypatch.setattr(launch, function, lambda *given, run=original: ran.append(run) or run(*given))
    found = stepped(fused, data.clone().to(DEVICE))
    assert len(ran) == 2
    for name, value in expected.items():
        if value is None:
            assert found[name] is None, name
        else:
            assert relative(found[name], value) < 1e-4, name


@pytest.mark.parametrize(("name", "changed"), CASES[2:4])
def test_padding_changes_nothing(name, changed):
    model = small(name, changed).float()
    batches = padded_and_plain(model, torch.tensor([2, 0, 3]))
    wide, batch = pytree.tree_map_only(torch.Tensor, lambda value: value.to(DEVICE), batches)
    accelerate(model, DEVICE)
    torch.testing.assert_close(model(wide)[:3], model(batch), rtol=0, atol=1e-5)
    model(wide)[:3].sum().backward()
    assert all(parameter.grad is None or parameter.grad.isfinite().all() for parameter in model.parameters())


@pytest.mark.parametrize(("name", "changed"), [CASES[0], *CASES[2:4]])
def test_edges_are_ordered_ahead_of_a_step(name, changed):
    """What a captured step assembles is what the model would order itself; in evaluation nothing is ordered."""
    model = small(name, changed).float()
    wide, _ = pytree.tree_map_only(
        torch.Tensor, lambda value: value.to(DEVICE), padded_and_plain(model, torch.arange(3))
    )
    accelerate(model, DEVICE)
    assert isinstance(model, AssembledModel)
    ahead = model.assembled(wide)
    assert isinstance(ahead, SortedBatch)
    assert len(pytree.tree_leaves(ahead)) > len(pytree.tree_leaves(wide))  # slots copy the order with the rest
    found, expected = stepped(copy.deepcopy(model), ahead), stepped(copy.deepcopy(model), wide)
    for part, value in expected.items():
        assert value is None or torch.equal(found[part], value), part
    model.eval()
    assert model.assembled(wide) is wide
    torch.testing.assert_close(model(ahead), model(wide))


def test_rows_are_gathered_with_derivatives_of_any_order():
    index = torch.tensor([3, 0, 3, 1, 3], device=DEVICE)
    order = order_of(index, 5)
    x, pull = torch.randn(5, 3, device=DEVICE, requires_grad=True), torch.randn(5, 3, device=DEVICE)
    results = []
    for y in (gather_rows(x, index, order), x[index]):
        (first,) = torch.autograd.grad((y**3 * pull).sum(), x, create_graph=True)
        results.append([y, first, torch.autograd.grad(first.square().sum(), x)[0]])
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected)
    assert torch.equal(gather_rows(x, index, None), x[index])
