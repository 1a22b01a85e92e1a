import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch import nn
from torch.nn import functional as F

import ckgconv.nn.kernel as kernel_module
from ckgconv import InputError
from ckgconv.nn import Kernel
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")


def some_pairs(encode=rrwp):
    graphs = packed((6, random_edges(6, 7, 1)), (9, random_edges(9, 10, 2)))
    return global_support(graphs, encode(graphs, 3))


def plain(kernel, layer, x):
    """Eqs. 5 and 6 with torch's own layers, batch statistics."""

    def normalised(norm, values):
        return F.batch_norm(values, None, None, norm.scale[layer], norm.shift[layer], training=True)

    def linear(module, values):
        return F.linear(values, module.weight[layer], module.bias[layer])

    for block in kernel.blocks:
        hidden = linear(block.linear_in, F.gelu(normalised(block.norm_in, x)))
        x = x + linear(block.linear_out, F.gelu(normalised(block.norm_out, hidden)))
    return linear(kernel.linear, normalised(kernel.norm, x))


@pytest.mark.parametrize("blocks", [0, 1, 2, 3])
def test_every_group_is_the_equation(blocks):
    pairs = some_pairs()
    kernel = Kernel(4, 5, layers=3, blocks=blocks).double()
    for parameter in kernel.parameters():
        nn.init.normal_(parameter)
    x = torch.randn(pairs.num_pairs, 4)
    for layer, values in enumerate(kernel(x, pairs)):
        torch.testing.assert_close(values.stored, plain(kernel, layer, x), rtol=0, atol=1e-11)


@pytest.mark.parametrize("norm", ["batch", "layer", "none"])
@pytest.mark.parametrize("encode", [rrwp, sparse_rrwp])
@pytest.mark.parametrize("training", [True, False])
def test_batched_groups_equal_groups_in_turn(monkeypatch, norm, encode, training):
    """What a GPU runs against what a CPU runs: values, gradients and running statistics."""
    pairs = some_pairs(encode)
    x = torch.randn(pairs.coordinates.shape[0], 4)
    results = []
    for slices in (lambda groups, device: list(range(groups)), lambda groups, device: [slice(None)]):
        monkeypatch.setattr(kernel_module, "group_slices", slices)
        torch.manual_seed(1)
        kernel = Kernel(4, 5, layers=3, norm=norm).double().train(training)
        for parameter in kernel.parameters():
            nn.init.normal_(parameter, std=0.5)
        rows = x.clone().requires_grad_()
        values = kernel(rows, pairs)
        stacked = torch.stack([psi.stored for psi in values])
        background = torch.stack([psi.background for psi in values]).sum() if encode is sparse_rrwp else 0
        gradients = torch.autograd.grad(stacked.sin().sum() + background, [rows, *kernel.parameters()])
        results.append([stacked, *gradients, *kernel.buffers()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_dropout_spares_the_zero_rows_and_keeps_the_expectation():
    pairs = some_pairs(sparse_rrwp)
    kernel = Kernel(4, 4, blocks=1, mlp_dropout=0.5, kernel_dropout=0.5, norm="none").double()
    x = torch.randn(pairs.coordinates.shape[0], 4)
    draws = [kernel(x, pairs)[0] for _ in range(2000)]
    (calm,) = kernel.eval()(x, pairs)
    for draw in draws:
        torch.testing.assert_close(draw.background, calm.background)
    assert (draws[0].stored == 0).double().mean() == pytest.approx(0.5, abs=0.1)
    average = torch.stack([draw.stored for draw in draws]).mean(0)
    torch.testing.assert_close(average, calm.stored, rtol=0, atol=0.15)


def test_constraints():
    pairs = some_pairs()
    x = torch.randn(pairs.num_pairs, 4)
    (positive,) = Kernel(4, 3, constraint="softplus").double()(x, pairs)
    assert (positive.stored > 0).all()
    (shares,) = Kernel(4, 3, constraint="softmax").double()(x, pairs)
    total = torch.zeros(15, 3).index_add(0, pairs.receiver, shares.stored)
    torch.testing.assert_close(total, pairs.support_size.unsqueeze(-1).expand(-1, 3))
    (free,) = Kernel(4, 3).double()(x, pairs)
    assert (free.stored < 0).any()
    with pytest.raises(InputError, match="constraint is 'sigmoid'"):
        Kernel(4, 3, constraint="sigmoid")


def test_repr():
    assert repr(Kernel(2, 3, layers=4, blocks=0, kernel_dropout=0.5)) == (
        "Kernel(\n"
        "  layers=4, kernel_dropout=0.5, constraint='none'\n"
        "  (blocks): ModuleList()\n"
        "  (norm): WeightedBatchNorm(2, groups=4, initial_scale=1.0)\n"
        "  (linear): GroupedLinear(2 → 3, groups=4)\n"
        ")"
    )


@pytest.mark.parametrize("encode", [rrwp, sparse_rrwp])
@pytest.mark.parametrize("constraint", ["none", "softmax"])
@pytest.mark.parametrize("blocks", [0, 2])
@pytest.mark.parametrize("training", [True, False])
def test_passes_of_a_cpu_equal_the_modules(monkeypatch, encode, constraint, blocks, training):
    """Values, gradients and running statistics, wherever the passes apply and where they must not."""
    pairs = some_pairs(encode)
    x = torch.randn(pairs.coordinates.shape[0], 4)
    x[3] = x[0]
    results = []
    for applies in (True, False):
        if not applies:
            monkeypatch.setattr(Kernel, "runs_on_cpu", lambda self, features, pairs: False)
        torch.manual_seed(1)
        kernel = Kernel(4, 5, layers=3, blocks=blocks, constraint=constraint).double().train(training)
        for parameter in kernel.parameters():
            nn.init.normal_(parameter, std=0.5)
        for buffer in kernel.buffers():
            nn.init.uniform_(buffer, 0.5, 2.0)
        rows = x.clone().requires_grad_()
        with torch.set_grad_enabled(training):
            stacked = torch.stack([psi.stored for psi in kernel(rows, pairs)])
        result = [stacked, *kernel.buffers()]
        if training:
            result += torch.autograd.grad(stacked.sin().sum(), [rows, *kernel.parameters()])
        results.append(result)
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_layers_in_turn_equal_a_call_and_hooks_see_them():
    pairs = some_pairs()
    kernel, x, seen = Kernel(4, 5, layers=3).double().eval(), torch.randn(pairs.num_pairs, 4), []
    with torch.no_grad():
        for one, other in zip(kernel(x, pairs), kernel.in_turn(x, pairs), strict=True):
            torch.testing.assert_close(one.stored, other.stored)
        kernel.register_forward_hook(lambda module, inputs, result: seen.append(result))
        list(kernel.in_turn(x, pairs))
    assert len(seen[0]) == 3
