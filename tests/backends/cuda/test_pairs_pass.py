"""The pairs pass as Triton kernels against `nn.kernel` in float64: output, statistics and every gradient."""

import copy

import pytest
import torch
from on_device import DEVICE, keep_mask, needs_triton, relative
from torch import nn

from ckgconv.backends.stages import stages_of
from ckgconv.graphs import Pairs
from ckgconv.nn import Kernel

pytestmark = needs_triton
SEED = 12345


def drawn_kernel(width, groups, blocks, dropouts=(0.0, 0.0)):
    mlp_dropout, kernel_dropout = dropouts
    kernel = Kernel(width, width, groups, blocks, mlp_dropout=mlp_dropout, kernel_dropout=kernel_dropout).double()
    for name, parameter in kernel.named_parameters():
        if name.endswith("scale"):
            nn.init.normal_(parameter, 1.0, 0.2)
        elif name.endswith("weight"):
            nn.init.normal_(parameter, std=width**-0.5)
        else:
            nn.init.normal_(parameter, std=0.2 if name.endswith("shift") else 1.0)
    return kernel


def pairs_of(rows, stored, weight):
    """Rows from `stored` on are zero rows: they are not dropped."""
    nothing, pointer = torch.zeros(stored, dtype=torch.int64), torch.tensor([0, stored])
    size = torch.ones(1, dtype=torch.float64)
    return Pairs(pointer, nothing, nothing, torch.zeros(rows, 1), size, torch.zeros(1, dtype=torch.int64), weight)


def specified(kernel, x, pairs, monkeypatch, seed=SEED):
    """ψ [L, R, D] of the module before its constraint, with the dropout masks of the Triton kernels; its fields."""
    layers, stored, width = kernel.layers, pairs.num_pairs, x.shape[1]
    asked = []

    def mask(number, layer, probability):
        return keep_mask(seed + number * layers + layer, stored, width, probability).to(x)

    def handed(values, probability, training):
        layer, block = divmod(len(asked), len(kernel.blocks))
        asked.append(block)
        return values * mask(2 * block + 1, layer, probability) if probability else values

    monkeypatch.setattr("ckgconv.nn.kernel.dropout", handed)
    outputs = []
    for layer in range(layers):
        psi = kernel.unconstrained(x, pairs, layer)
        if kernel.kernel_dropout:
            kept = mask(2 * len(kernel.blocks), layer, kernel.kernel_dropout)
            psi = torch.cat([psi[:stored] * kept, psi[stored:]])
        outputs.append(psi)
    return torch.stack(outputs)


def leaves(kernel, x, dtype, device):
    kernel = copy.deepcopy(kernel).to(device, dtype)
    x = x.to(device, dtype).requires_grad_()
    stages, _ = stages_of(kernel)
    return kernel, x, [x, *(field for stage in stages for field in stage)]


def fused(kernel, x, weight=None, filled=None, spared=0, seed=SEED, part=None):
    """ψ [L, R, D] by the pass, with a float32 copy of the kernel on the device."""
    from ckgconv.backends.cuda.pairs_pass import launch
    from ckgconv.backends.cuda.pairs_pass.options import Dropout, rows_of, settings_of
    from ckgconv.backends.cuda.streams import IN_ORDER
    from ckgconv.backends.stages import mlp_dropout

    stages, running = stages_of(kernel)
    settings = settings_of(x, running, kernel.norm, IN_ORDER)
    rows = rows_of(x, None if weight is None else weight.float().to(DEVICE), filled)
    if not kernel.training:
        return launch.evaluated_kernel_mlp(x, stages, settings, rows)
    seeds = torch.tensor([seed], device=DEVICE)
    dropout = Dropout(seeds, mlp_dropout(kernel), kernel.kernel_dropout, x.shape[0] - spared)
    return launch.kernel_mlp(x, stages, settings, rows, dropout, part)[0]


@pytest.mark.parametrize("spared", [0, 3])
@pytest.mark.parametrize(
    ("rows", "width", "groups", "blocks", "mlp_dropout", "kernel_dropout"),
    [
        (150, 20, 3, 2, 0.0, 0.0),
        (70, 16, 2, 1, 0.1, 0.5),
        (33, 24, 1, 0, 0.0, 0.3),
        (65, 48, 2, 2, 0.3, 0.5),
        (5, 20, 2, 1, 0.1, 0.0),
        (64, 16, 2, 2, 0.0, 0.5),
    ],
)
def test_forward_and_backward(rows, width, groups, blocks, mlp_dropout, kernel_dropout, spared, monkeypatch):
    kernel = drawn_kernel(width, groups, blocks, (mlp_dropout, kernel_dropout))
    x = torch.randn(rows, width, dtype=torch.float64) * 2 + 1
    weight = torch.randint(0, 4, (rows,)).double()
    pulled = torch.randn(groups, rows, width, dtype=torch.float64)
    exact_kernel, exact_x, exact = leaves(kernel, x, torch.float64, "cpu")
    expected = specified(exact_kernel, exact_x, pairs_of(rows, rows - spared, weight), monkeypatch)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)
    rough_kernel, rough_x, rough = leaves(kernel, x, torch.float32, DEVICE)
    psi = fused(rough_kernel, rough_x, weight, spared=spared)
    found = torch.autograd.grad((psi * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(psi, expected) < 2e-6
    for mine, theirs in zip(rough_kernel.buffers(), exact_kernel.buffers(), strict=True):
        assert relative(mine, theirs) < 2e-6
    for mine, theirs in zip(found, wanted, strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_the_input_may_be_given(weighted, monkeypatch):
    from ckgconv.backends.cuda.pairs_pass import forward

    monkeypatch.setattr(forward, "row_moments", None)
    kernel = drawn_kernel(16, 2, 1)
    x = torch.randn(90, 16, dtype=torch.float64) + 3
    weight = torch.randint(0, 4, (90,)).double() if weighted else None
    counts = torch.ones(90, 1, dtype=torch.float64) if weight is None else weight.unsqueeze(-1)
    mean = (counts * x).sum(0) / counts.sum()
    part = torch.stack([counts.sum().expand(16), mean, (counts * (x - mean).square()).sum(0)])
    exact_kernel, exact_x, exact = leaves(kernel, x, torch.float64, "cpu")
    expected = specified(exact_kernel, exact_x, pairs_of(90, 90, weight), monkeypatch)
    wanted = torch.autograd.grad(expected.square().mean(), exact)
    rough_kernel, rough_x, rough = leaves(kernel, x, torch.float32, DEVICE)
    psi = fused(rough_kernel, rough_x, weight, part=part.float().to(DEVICE))
    assert relative(psi, expected) < 2e-6
    for mine, theirs in zip(torch.autograd.grad(psi.square().mean(), rough), wanted, strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("dropouts", [(0.0, 0.0), (0.2, 0.5)])
@pytest.mark.parametrize(
    ("rows", "width", "groups", "blocks"), [(150, 20, 3, 2), (70, 64, 2, 1), (64, 16, 2, 2), (40, 96, 1, 2)]
)
def test_values_kept_in_16_bits(rows, width, groups, blocks, dropouts, monkeypatch):
    """Only the rounding of every stage differs."""
    torch.manual_seed(rows)
    kernel = drawn_kernel(width, groups, blocks, dropouts)
    x = torch.randn(rows, width, dtype=torch.float64) * 2 + 1
    pulled = torch.randn(groups, rows, width, dtype=torch.float64)
    exact_kernel, exact_x, exact = leaves(kernel, x, torch.float64, "cpu")
    expected = specified(exact_kernel, exact_x, pairs_of(rows, rows, None), monkeypatch, 0)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)
    rough_kernel, rough_x, rough = leaves(kernel, x, torch.float32, DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        psi = fused(rough_kernel, rough_x, seed=0)
    found = torch.autograd.grad((psi.float() * pulled.float().to(DEVICE)).sum(), rough)
    assert psi.dtype == torch.bfloat16
    assert relative(psi, expected) < 0.004
    # Some gradients vanish, and only rounding is left.
    largest = max(float(theirs.norm()) for theirs in wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine.double().cpu() - theirs).norm()) < 0.015 * max(float(theirs.norm()), 0.1 * largest)


def test_padding_is_neither_read_nor_written(monkeypatch):
    kernel = drawn_kernel(16, 2, 2)
    x = torch.randn(90, 16, dtype=torch.float64)
    padded = x.clone()
    padded[71:] = float("nan")
    exact_kernel, exact_x, exact = leaves(kernel, x[:71], torch.float64, "cpu")
    expected = specified(exact_kernel, exact_x, pairs_of(71, 71, None), monkeypatch)
    wanted = torch.autograd.grad(expected.square().mean(), exact)
    rough_kernel, rough_x, rough = leaves(kernel, padded, torch.float32, DEVICE)
    psi = fused(rough_kernel, rough_x, filled=torch.tensor([71], device=DEVICE))
    found = torch.autograd.grad(psi[:, :71].square().mean(), rough)
    assert relative(psi[:, :71], expected) < 2e-6
    assert (found[0][71:] == 0).all()
    assert relative(found[0][:71], wanted[0]) < 2e-5
    for mine, theirs in zip(found[1:], wanted[1:], strict=True):
        assert relative(mine, theirs) < 5e-5


def test_evaluation_takes_running_statistics(monkeypatch):
    kernel = drawn_kernel(16, 2, 1).eval()
    for buffer in kernel.buffers():
        nn.init.uniform_(buffer, 0.5, 2.0)
    x = torch.randn(40, 16, dtype=torch.float64)
    expected = specified(kernel, x, pairs_of(40, 40, None), monkeypatch)
    rough_kernel, rough_x, _ = leaves(kernel, x, torch.float32, DEVICE)
    assert relative(fused(rough_kernel, rough_x), expected) < 2e-6
