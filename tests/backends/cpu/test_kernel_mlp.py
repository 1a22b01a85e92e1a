"""The pairs pass of a CPU against its equation: output, running statistics and every gradient."""

import pytest
import torch
from torch.autograd import gradcheck

from ckgconv.backends.cpu.memory import Memory
from ckgconv.backends.cpu import kernel_mlp as cpu
from ckgconv.backends.cuda.pairs_pass import naive
from ckgconv.backends.cuda.pairs_pass.naive import Stage
from ckgconv.ops.dropout import packed

EPSILON, MOMENTUM = 1e-5, 0.1
SHAPES = [
    (150, 20, 20, 2, 0.0, 0.0),
    (71, 16, 9, 1, 0.1, 0.5),
    (33, 24, 7, 0, 0.0, 0.3),
    (65, 48, 48, 2, 0.3, 0.5),
    (66, 8, 12, 3, 0.3, 0.0),
    (2, 4, 4, 1, 0.0, 0.0),
]


def drawn_stages(width, channels, blocks):
    """Of one layer."""
    widths = [(width, width)] * (2 * blocks) + [(channels, width)]
    return [
        Stage(
            *(
                field.double().requires_grad_()
                for field in (
                    1 + 0.2 * torch.randn(inner),
                    0.2 * torch.randn(inner),
                    torch.randn(outer, inner) / inner**0.5,
                    torch.randn(outer),
                )
            )
        )
        for outer, inner in widths
    ]


def started(stages):
    return [(torch.zeros_like(stage.scale).detach(), torch.ones_like(stage.scale).detach()) for stage in stages]


def trained(x, stages, running, mlp_dropout, kernel_dropout, memory):
    statistics = [each.unsqueeze(0) for each in running[0]]
    shared = cpu.share(x.detach(), statistics, MOMENTUM, EPSILON, memory, len(stages))
    return cpu.kernel_mlp(x, stages, shared, running, MOMENTUM, mlp_dropout, kernel_dropout, EPSILON)


def expected_of(x, stages, mlp_dropout, kernel_dropout):
    """The equation with the masks that the generator gives in the same order."""
    last = len(stages) - 1

    def drop(values, number):
        return packed.dropout(values, kernel_dropout if number == last else mlp_dropout)

    grouped = [Stage(*(field.unsqueeze(0) for field in stage)) for stage in stages]
    psi, moments = naive.kernel_mlp(x, grouped, None, drop, EPSILON)
    return psi.squeeze(0), moments


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_and_backward(shape):
    rows, width, channels, blocks, *dropouts = shape
    stages, running = drawn_stages(width, channels, blocks), None
    x = (2 * torch.randn(rows, width).double() + 1).requires_grad_()
    running, inputs = started(stages), [x, *(field for stage in stages for field in stage)]
    torch.manual_seed(5)
    psi = trained(x, stages, running, *dropouts, Memory())
    torch.manual_seed(5)
    expected, moments = expected_of(x, stages, *dropouts)
    torch.testing.assert_close(psi, expected, rtol=0, atol=1e-11)
    for (mean, variance), (total, batch_mean, batch_variance) in zip(running, moments.squeeze(2), strict=True):
        torch.testing.assert_close(mean, MOMENTUM * batch_mean, rtol=0, atol=1e-12)
        unbiased = batch_variance * total / (total - 1)
        torch.testing.assert_close(variance, 1 - MOMENTUM + MOMENTUM * unbiased, rtol=0, atol=1e-11)
    pulled = torch.randn_like(psi)
    found, wanted = (torch.autograd.grad((each * pulled).sum(), inputs) for each in (psi, expected))
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-8, atol=1e-10)


def test_gradients():
    stages = drawn_stages(3, 2, 1)
    x = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)

    def run(values, *fields):
        torch.manual_seed(1)
        own = [Stage(*fields[start : start + 4]) for start in range(0, len(fields), 4)]
        return trained(values, own, started(own), 0.2, 0.5, Memory())

    assert gradcheck(run, (x, *(field for stage in stages for field in stage)))


def test_graphs_that_live_at_once_do_not_share_memory():
    stages, memory = drawn_stages(8, 8, 2), Memory()
    x = torch.randn(40, 8, dtype=torch.float64, requires_grad=True)
    first = trained(x, stages, started(stages), 0.0, 0.0, memory)
    wanted = torch.autograd.grad(first.sin().sum(), x, retain_graph=True)[0]
    trained(5 + 3 * x, stages, started(stages), 0.0, 0.0, memory)
    torch.testing.assert_close(torch.autograd.grad(first.sin().sum(), x)[0], wanted)


@pytest.mark.parametrize("blocks", [0, 1, 2])
@pytest.mark.parametrize("rows_at_once", [7, 40, 99])
def test_evaluation_takes_given_moments(monkeypatch, blocks, rows_at_once):
    monkeypatch.setattr(cpu, "EVALUATED_ROWS", rows_at_once)
    stages = drawn_stages(16, 9, blocks)
    x = torch.randn(40, 16, dtype=torch.float64)
    with torch.no_grad():
        expected, moments = expected_of(x, stages, 0.0, 0.0)
        running = [(mean, variance) for _, mean, variance in moments.squeeze(2)]
        psi = cpu.evaluated_kernel_mlp(x, cpu.folded(stages, running, EPSILON), cpu.share_rooms(x, Memory()))
    torch.testing.assert_close(psi, expected, rtol=0, atol=1e-12)


def test_all_layers_fold_as_each_does():
    layers = [drawn_stages(16, 9, 2) for _ in range(3)]
    running = [[(torch.randn(16).double(), torch.rand(16).double()) for _ in stages] for stages in layers]
    together = [Stage(*map(torch.stack, zip(*each, strict=True))) for each in zip(*layers, strict=True)]
    moments = [tuple(map(torch.stack, zip(*each, strict=True))) for each in zip(*running, strict=True)]
    found = cpu.folded(together, moments, EPSILON)
    for number, (stages, own) in enumerate(zip(layers, running, strict=True)):
        for mine, theirs in zip(found, cpu.folded(stages, own, EPSILON), strict=True):
            for field, wanted in zip(mine, theirs, strict=True):
                torch.testing.assert_close(field[number], wanted)


@pytest.mark.parametrize("rows", [0, 1, 2, 7, 64])
def test_sums_by_thread(rows):
    one, other = torch.randn(rows, 3, dtype=torch.float64), torch.randn(rows, 5, dtype=torch.float64)
    torch.testing.assert_close(cpu.row_sum(one), one.sum(0))
    torch.testing.assert_close(cpu.transposed_product(one, other), one.T @ other)
