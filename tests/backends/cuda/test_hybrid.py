"""The hybrid as on a GPU against `nn.hybrid` in float64, over what its recipes may say: prediction and every gradient.

Every parameter is drawn, since some begin at zero and would hide what they multiply.
"""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import DEVICE, needs_triton, relative
from small_models import awake
from torch_geometric.data import Batch, Data

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.backends.cuda.supports import tail_reason
from ckgconv.nn.hybrid import Hybrid
from ckgconv.ops import dispatch

pytestmark = needs_triton
WIDTH = 8
# What a recipe says, and why the tail of its blocks is not fused (None: it is).
CASES = {
    "parallel": ({"mixing": "parallel"}, None),
    "more heads than channels": ({"mixing": "parallel", "heads": 9, "head_channels": 1}, None),
    "heads that do not divide the width": ({"mixing": "parallel", "heads": 3, "head_channels": 5}, None),
    "attention alone, in heads of another width": (
        {"mixing": "turns", "heads": 3, "head_channels": 5},
        "another width",
    ),
    "hops": ({"mixing": "parallel", "support": 2}, None),
    "hops in turns": ({"mixing": "turns", "support": 2}, None),
    "no degree": ({"mixing": "parallel", "degree_scaler": "none"}, None),
    "hops, no degree": ({"mixing": "parallel", "support": 2, "degree_scaler": "none"}, None),
    "zero rows": ({"mixing": "modulated", "support": "sparse_global"}, None),
    "128 channels of attention": ({"mixing": "parallel", "heads": 8, "head_channels": 16}, None),
    "144 channels of attention": ({"mixing": "parallel", "heads": 9, "head_channels": 16}, "144 channels"),
    "a wide network": ({"mixing": "parallel", "width": 136}, "136 channels do not fit"),
}


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)


def hybrid(**values) -> Hybrid:
    chosen = recipe("zinc-hybrid-parallel").model
    kernel = replace(chosen.kernel, dropout=0.0, mlp_dropout=0.0)
    small = {"width": WIDTH, "blocks": 2, "heads": 2, "head_channels": 4, "dropout": 0.0, "attention_dropout": 0.0}
    torch.manual_seed(0)
    return awake(Hybrid(replace(chosen, kernel=kernel, **{**small, **values})).double())


def without_edges() -> Batch:
    """Three graphs of two nodes and one, which nothing joins."""
    none = torch.empty(2, 0, dtype=torch.int64)
    bonds = torch.empty(0, 1, dtype=torch.int64)
    nodes = (torch.tensor(types).unsqueeze(1) for types in ([3, 4], [5], [3, 6]))
    return Batch.from_data_list([Data(x=x, edge_index=none, edge_attr=bonds) for x in nodes])


def computed(model, data):
    """Prediction, gradients and buffers."""
    prediction = model(data)
    prediction.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"prediction": prediction, **gradients, **dict(model.named_buffers())}


def equals_the_plain_one(model, data):
    fused = accelerate(copy.deepcopy(model).float(), DEVICE)
    expected, found = computed(model, data), computed(fused, data.clone().to(DEVICE))
    for name, value in expected.items():
        assert (value is None) == (found[name] is None), name
        if value is not None:
            assert relative(found[name], value) < 2e-4, name


@pytest.mark.parametrize("case", CASES)
def test_equals_the_plain_one(case):
    values, reason = CASES[case]
    model, data = hybrid(**values), molecules(5, 1, 12)
    fused = copy.deepcopy(model).float().to(DEVICE)
    batch = fused.prepare(data.clone().to(DEVICE))
    found = tail_reason(fused.blocks, torch.empty(18, fused.recipe.width, device=DEVICE), batch)
    assert found is None if reason is None else reason in (found or "")
    equals_the_plain_one(model, data)


@pytest.mark.parametrize("mixing", ["turns", "parallel", "modulated"])
def test_graphs_without_edges(mixing):
    equals_the_plain_one(hybrid(mixing=mixing), without_edges())


def test_graphs_too_large_for_one_program(monkeypatch):
    """Attention then runs by pairs, not by graphs."""
    monkeypatch.setattr("ckgconv.backends.cuda.supports.LARGEST_ATTENDED", 1)
    equals_the_plain_one(hybrid(mixing="parallel"), molecules(5, 1, 12))


def test_float64_is_computed_by_the_plain_module():
    model, data = hybrid(mixing="parallel"), molecules(5, 1, 12).to(DEVICE)
    model, fused = model.to(DEVICE), accelerate(copy.deepcopy(model), DEVICE)
    assert torch.equal(fused(data), model(data))
