"""The tail of a block as Triton kernels against `nn.block` in float64: output, statistics and every gradient.

Covers `ckgconv.backends.cuda.hybrid`, whose blocks end in it.
"""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import DEVICE, keep_mask, needs_triton, relative
from torch import nn

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.backends.cuda.supports import tail_reason
from ckgconv.nn import KernelConvolution
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise
from ckgconv.nn.hybrid import Hybrid
from ckgconv.ops import dispatch

pytestmark = needs_triton
SEED, NODES, WIDTH = 77, 37, 20


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)


class Given(KernelConvolution):
    """A convolution whose sums are given."""

    def summed(self, x, psi, pairs):
        return psi


def drawn_block(dropout):
    block = CKGConvBlock(Given(Depthwise(WIDTH), WIDTH), WIDTH, dropout=dropout).double()
    for name, parameter in block.named_parameters():
        spread = parameter.shape[1] ** -0.5 if name.endswith("weight") else 0.3
        nn.init.normal_(parameter, float(name.endswith(("scale", "theta1"))), spread)
    return block


@pytest.mark.parametrize(("dropout", "padding", "path"), [(0.0, 0, False), (0.3, 11, True)])
def test_forward_and_backward(dropout, padding, path, monkeypatch):
    from ckgconv.backends.cuda.ckgcn import block_fields
    from ckgconv.backends.cuda.node_pass import launch
    from ckgconv.backends.cuda.node_pass.options import Dropout
    from ckgconv.backends.cuda.node_pass.tail import Nodes, block_tail
    from ckgconv.backends.cuda.streams import IN_ORDER

    block, asked = drawn_block(dropout), []
    rough = copy.deepcopy(block).float().to(DEVICE)

    def handed(values, probability, training):
        asked.append(probability)
        return values * keep_mask(SEED + len(asked) - 1, *values.shape, probability) if probability else values

    monkeypatch.setattr("ckgconv.nn.block.dropout", handed)
    x, y, pulled = torch.randn(3, NODES, WIDTH, dtype=torch.float64)
    degree = torch.randint(0, 5, (NODES,)).double()
    paths = 1.5 * (torch.rand(NODES, 1) < 0.7).double() if path else None
    exact = [x.clone().requires_grad_(), y.clone().requires_grad_()]
    expected = block(exact[0], exact[1], None, degree, None, paths)
    parameters = list(block_fields(block, x))
    wanted = torch.autograd.grad((expected * pulled).sum(), [*exact, *parameters])

    def padded(values):
        nothing = torch.full((padding, *values.shape[1:]), float("nan"), dtype=values.dtype)
        return torch.cat([values, nothing]).float().to(DEVICE)

    given = [padded(each).requires_grad_() for each in (x, y)]
    nodes = Nodes(padded(degree), torch.ones(NODES + padding, device=DEVICE), torch.tensor([NODES], device=DEVICE))
    settings = launch.settings_of(
        given[0], [rough.convolution_norm.running, rough.ffn_norm.running], rough.ffn_norm, IN_ORDER
    )
    own = None if paths is None else padded(paths).squeeze(-1).unsqueeze(0)
    fields = block_fields(rough, given[0])
    torch.use_deterministic_algorithms(True)  # fills what is not written with NaN
    try:
        drop = Dropout(torch.tensor([SEED], device=DEVICE), dropout, own)
        found = block_tail(*given, fields, nodes, settings, drop)
        gradients = torch.autograd.grad((found * padded(pulled).nan_to_num()).sum(), [*given, *fields])
    finally:
        torch.use_deterministic_algorithms(False)
    assert relative(found[:NODES], expected) < 2e-6
    assert (found[NODES:] == 0).all()
    for mine, theirs in zip(rough.buffers(), block.buffers(), strict=True):
        assert relative(mine, theirs) < 2e-6
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert relative(mine[: len(theirs)], theirs) < 5e-5
    assert all((each[NODES:] == 0).all() for each in gradients[:2])


@pytest.mark.parametrize("mixing", ["turns", "modulated", "parallel"])
def test_a_hybrid_computes_what_the_plain_one_does(mixing):
    model, data = small_hybrid(mixing), molecules(5, 1, 12)
    fused = accelerate(copy.deepcopy(model).float(), DEVICE)
    batch = fused.prepare(data.clone().to(DEVICE))
    assert tail_reason(fused.blocks, torch.empty(18, 8, device=DEVICE), batch) is None
    results = []
    for each, given in ((model, data), (fused, data.clone().to(DEVICE))):
        prediction = each(given)
        prediction.square().sum().backward()
        gradients = {name: parameter.grad for name, parameter in each.named_parameters()}
        results.append({"prediction": prediction, **gradients, **dict(each.named_buffers())})
    expected, found = results
    for name, value in expected.items():
        if value is None:
            assert found[name] is None, name
        else:
            assert relative(found[name], value) < 2e-4, name


def small_hybrid(mixing) -> Hybrid:
    chosen = recipe(f"zinc-hybrid-{mixing}").model
    kernel = replace(chosen.kernel, dropout=0.0, mlp_dropout=0.0)
    values = {"width": 8, "blocks": 2, "heads": 2, "head_channels": 4, "dropout": 0.0, "attention_dropout": 0.0}
    torch.manual_seed(0)
    return Hybrid(replace(chosen, kernel=kernel, **values)).double()


def test_other_blocks_run_as_they_are_written():
    model = small_hybrid("turns").float()
    batch, h = model.prepare(molecules(5, 1, dtype=torch.float32)), torch.empty(6, 8)
    assert "evaluation" in (tail_reason(model.eval().blocks, h, batch) or "")
    parallel = small_hybrid("parallel").float()
    parallel.blocks[0].dropout = 0.1
    assert "wider" in (tail_reason(parallel.blocks, h, batch) or "")
