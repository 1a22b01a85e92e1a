"""The CPU passes against `nn.kernel`: values, running statistics and every gradient."""

import copy

import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch import nn
from torch.autograd import gradcheck
from torch.func import functional_call

from ckgconv.backends import accelerate, plain
from ckgconv.backends.cpu import kernel_mlp
from ckgconv.backends.cpu.kernel import CPUKernel
from ckgconv.backends.stages import by_layer, stages_of
from ckgconv.graphs import Pairs
from ckgconv.nn import Kernel
from ckgconv.ops.kernel_mlp import Stage
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp, sparse_rrwp

SHAPES = [
    (150, 20, 20, 2, 0.0, 0.0),
    (71, 16, 9, 1, 0.1, 0.5),
    (33, 24, 7, 0, 0.0, 0.3),
    (65, 48, 48, 2, 0.3, 0.5),
    (66, 8, 12, 3, 0.3, 0.0),
    (2, 4, 4, 1, 0.0, 0.0),
]


def all_stored(rows):
    """Pairs of which a kernel reads only the number."""
    nothing = torch.zeros(rows, dtype=torch.int64)
    pointer, one = torch.tensor([0, rows]), torch.zeros(1, dtype=torch.int64)
    return Pairs(pointer, nothing, nothing, torch.zeros(rows, 1), torch.tensor([float(rows)]), one, None)


def some_pairs(encode=rrwp):
    graphs = packed((6, random_edges(6, 7, 1)), (9, random_edges(9, 10, 2)))
    return global_support(graphs, encode(graphs, 3, dtype=torch.float64))


def drawn_kernel(width, channels, blocks, layers=2, **options):
    kernel = Kernel(width, channels, layers=layers, blocks=blocks, **options).double()
    for parameter in kernel.parameters():
        nn.init.normal_(parameter, std=0.5)
    for buffer in kernel.buffers():
        nn.init.uniform_(buffer, 0.5, 2.0)
    return kernel


def both(kernel, x, pairs):
    """ψ of all layers, statistics, and gradients where the kernel trains, of the module and of the passes."""
    for each in (kernel, accelerate(copy.deepcopy(kernel), "cpu")):
        torch.manual_seed(5)
        rows = x.clone().requires_grad_()
        with torch.set_grad_enabled(kernel.training):
            psi = torch.stack([values.stored for values in each(rows, pairs)])
        results = [psi, *each.buffers()]
        if kernel.training:
            results += torch.autograd.grad(psi.sin().sum(), [rows, *each.parameters()])
        yield each, results


@pytest.mark.parametrize("shape", SHAPES)
def test_training_is_the_module(shape):
    rows, width, channels, blocks, mlp_dropout, kernel_dropout = shape
    kernel = drawn_kernel(width, channels, blocks, mlp_dropout=mlp_dropout, kernel_dropout=kernel_dropout)
    x = 2 * torch.randn(rows, width).double() + 1
    (module, expected), (passes, found) = both(kernel, x, all_stored(rows))
    assert type(module) is Kernel
    assert type(passes) is CPUKernel
    assert passes.applies(x, all_stored(rows))
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("encode", [rrwp, sparse_rrwp])
@pytest.mark.parametrize("constraint", ["none", "softmax", "softplus"])
@pytest.mark.parametrize("blocks", [0, 2])
@pytest.mark.parametrize("training", [True, False])
def test_wherever_the_passes_apply_and_where_they_must_not(encode, constraint, blocks, training):
    pairs = some_pairs(encode)
    x = torch.randn(pairs.coordinates.shape[0], 4).double()
    x[3] = x[0]
    kernel = drawn_kernel(4, 5, blocks, 3, constraint=constraint).train(training)
    (_, expected), (_, found) = both(kernel, x, pairs)
    for mine, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-9)


def test_gradients():
    kernel = accelerate(drawn_kernel(3, 2, 1, 1, mlp_dropout=0.2, kernel_dropout=0.5), "cpu")
    x = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    names, values = zip(*kernel.named_parameters(), strict=True)

    def run(rows, *parameters):
        torch.manual_seed(1)
        (psi,) = functional_call(kernel, dict(zip(names, parameters, strict=True)), (rows, all_stored(7)))
        return psi.stored

    assert gradcheck(run, (x, *values))


def test_graphs_that_live_at_once_do_not_share_memory():
    kernel = accelerate(drawn_kernel(8, 8, 2, 1), "cpu")
    x = torch.randn(40, 8, dtype=torch.float64, requires_grad=True)
    (first,) = kernel(x, all_stored(40))
    wanted = torch.autograd.grad(first.stored.sin().sum(), x, retain_graph=True)[0]
    list(kernel(5 + 3 * x, all_stored(40)))
    torch.testing.assert_close(torch.autograd.grad(first.stored.sin().sum(), x)[0], wanted)


@pytest.mark.parametrize("blocks", [0, 1, 2])
@pytest.mark.parametrize("rows_at_once", [7, 40, 99])
def test_evaluation_in_pieces(monkeypatch, blocks, rows_at_once):
    monkeypatch.setattr(kernel_mlp, "EVALUATED_ROWS", rows_at_once)
    x = torch.randn(40, 16, dtype=torch.float64)
    (_, expected), (_, found) = both(drawn_kernel(16, 9, blocks).eval(), x, all_stored(40))
    torch.testing.assert_close(found[0], expected[0], rtol=0, atol=1e-11)


def test_all_layers_fold_as_each_does():
    stages, running = stages_of(drawn_kernel(16, 9, 2, 3))
    found = kernel_mlp.folded(stages, running, 1e-5)
    for number, own in enumerate(by_layer(stages)):
        own_running = [(mean[number], variance[number]) for mean, variance in running]
        for mine, theirs in zip(found, kernel_mlp.folded(own, own_running, 1e-5), strict=True):
            assert isinstance(mine, Stage)
            for field, wanted in zip(mine, theirs, strict=True):
                torch.testing.assert_close(field[number], wanted)


def test_hooks_see_all_layers():
    kernel, seen = accelerate(drawn_kernel(4, 5, 1, 3).eval(), "cpu"), []
    kernel.register_forward_hook(lambda module, inputs, result: seen.append(result))
    with torch.no_grad():
        list(kernel(torch.randn(9, 4).double(), all_stored(9)))
    assert len(seen[0]) == 3


def test_what_was_accelerated_becomes_plain_again():
    kernel = drawn_kernel(4, 5, 1)
    before = {name: value.clone() for name, value in kernel.state_dict().items()}
    assert type(plain(accelerate(kernel, "cpu"))) is Kernel
    assert all(torch.equal(value, before[name]) for name, value in kernel.state_dict().items())


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
def test_sums_by_thread(rows):
    one, other = torch.randn(rows, 3, dtype=torch.float64), torch.randn(rows, 5, dtype=torch.float64)
    torch.testing.assert_close(kernel_mlp.row_sum(one), one.sum(0))
    torch.testing.assert_close(kernel_mlp.transposed_product(one, other), one.T @ other)
