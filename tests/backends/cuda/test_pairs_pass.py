"""The pairs pass as Triton kernels against its equation: output, moments and every gradient."""

import pytest
import torch
from on_device import DEVICE, keep_mask, needs_triton, relative

from ckgconv.backends.cuda.pairs_pass import naive
from ckgconv.backends.cuda.pairs_pass.naive import Stage

pytestmark = needs_triton


def random_stages(groups, width, channels, blocks, dtype=torch.float64):
    widths = [(width, width)] * (2 * blocks) + [(channels, width)]
    return [
        Stage(
            1 + 0.2 * torch.randn(groups, inner, dtype=dtype),
            0.2 * torch.randn(groups, inner, dtype=dtype),
            torch.randn(groups, outer, inner, dtype=dtype) / inner**0.5,
            torch.randn(groups, outer, dtype=dtype),
        )
        for outer, inner in widths
    ]


def leaves(x, stages, dtype, device):
    x = x.to(device, dtype).requires_grad_()
    stages = [Stage(*(field.to(device, dtype).requires_grad_() for field in stage)) for stage in stages]
    return x, stages, [x, *(field for stage in stages for field in stage)]


def dropping(seed, rows, width, groups, probabilities, limit, last):
    """The masks of the kernels; rows from `limit` on are not dropped."""
    mlp_dropout, kernel_dropout = probabilities

    def drop(values, number):
        probability = kernel_dropout if number == last else mlp_dropout
        if probability == 0:
            return values
        masks = [keep_mask(seed + number * groups + group, rows, width, probability) for group in range(groups)]
        factor = torch.stack(masks).to(values)
        factor[:, limit:] = 1
        return values * factor

    return drop


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
def test_forward_and_backward(rows, width, groups, blocks, mlp_dropout, kernel_dropout, spared):
    from ckgconv.backends.cuda.pairs_pass import triton as fused

    stages = random_stages(groups, width, width, blocks)
    x = torch.randn(rows, width, dtype=torch.float64) * 2 + 1
    weight = torch.randint(0, 4, (rows,)).double()
    pulled = torch.randn(groups, rows, width, dtype=torch.float64)
    seed = torch.tensor([12345])
    limit = rows - spared
    drop = dropping(12345, rows, width, groups, (mlp_dropout, kernel_dropout), limit, 2 * blocks)

    exact_x, exact_stages, exact = leaves(x, stages, torch.float64, "cpu")
    expected, expected_moments = naive.kernel_mlp(exact_x, exact_stages, weight, drop, 1e-5)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)

    rough_x, rough_stages, rough = leaves(x, stages, torch.float32, DEVICE)
    running = [(torch.zeros(groups, width, device=DEVICE), torch.ones(groups, width, device=DEVICE)) for _ in stages]
    psi, moments = fused.kernel_mlp(
        rough_x,
        rough_stages,
        running,
        0.1,
        weight.float().to(DEVICE),
        None,
        seed.to(DEVICE),
        mlp_dropout,
        kernel_dropout,
        limit,
        1e-5,
    )
    found = torch.autograd.grad((psi * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(psi, expected) < 2e-6
    assert relative(moments, expected_moments) < 2e-6
    for (mean, variance), (total, batch_mean, batch_variance) in zip(running, expected_moments, strict=True):
        assert relative(mean, 0.1 * batch_mean) < 2e-6
        assert relative(variance, 0.9 + 0.1 * batch_variance * total / (total - 1)) < 2e-6
    for mine, theirs in zip(found, wanted, strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_the_input_may_be_given(weighted, monkeypatch):
    from ckgconv.backends.cuda.pairs_pass import triton as fused

    monkeypatch.setattr(fused, "row_moments", None)
    stages = random_stages(2, 16, 16, 1)
    x = torch.randn(90, 16, dtype=torch.float64) + 3
    weight = torch.randint(0, 4, (90,)).double() if weighted else None
    counts = torch.ones(90, 1, dtype=torch.float64) if weight is None else weight.unsqueeze(-1)
    mean = (counts * x).sum(0) / counts.sum()
    part = torch.stack([counts.sum().expand(16), mean, (counts * (x - mean).square()).sum(0)])
    exact_x, exact_stages, exact = leaves(x, stages, torch.float64, "cpu")
    expected, _ = naive.kernel_mlp(exact_x, exact_stages, weight, lambda values, number: values, 1e-5)
    wanted = torch.autograd.grad(expected.square().mean(), exact)
    rough_x, rough_stages, rough = leaves(x, stages, torch.float32, DEVICE)
    running = [(torch.zeros(2, 16, device=DEVICE), torch.ones(2, 16, device=DEVICE)) for _ in stages]
    seed = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    weight = weight.float().to(DEVICE) if weighted else None
    part = part.float().to(DEVICE)
    psi, _ = fused.kernel_mlp(rough_x, rough_stages, running, 0.1, weight, None, seed, 0.0, 0.0, 90, 1e-5, part)
    assert relative(psi, expected) < 2e-6
    for mine, theirs in zip(torch.autograd.grad(psi.square().mean(), rough), wanted, strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("dropouts", [(0.0, 0.0), (0.2, 0.5)])
@pytest.mark.parametrize(
    ("rows", "width", "groups", "blocks"), [(150, 20, 3, 2), (70, 64, 2, 1), (64, 16, 2, 2), (40, 96, 1, 2)]
)
def test_values_kept_in_16_bits(rows, width, groups, blocks, dropouts):
    """Rounding of every stage is all that differs."""
    from ckgconv.backends.cuda.pairs_pass import triton as fused

    torch.manual_seed(rows)
    stages = random_stages(groups, width, width, blocks)
    x = torch.randn(rows, width, dtype=torch.float64) * 2 + 1
    pulled = torch.randn(groups, rows, width, dtype=torch.float64)
    drop = dropping(0, rows, width, groups, dropouts, rows, 2 * blocks)
    exact_x, exact_stages, exact = leaves(x, stages, torch.float64, "cpu")
    expected, _ = naive.kernel_mlp(exact_x, exact_stages, None, drop, 1e-5)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)
    rough_x, rough_stages, rough = leaves(x, stages, torch.float32, DEVICE)
    running = [(torch.zeros(groups, width, device=DEVICE), torch.ones(groups, width, device=DEVICE)) for _ in stages]
    seed = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    with torch.autocast(DEVICE, torch.bfloat16):
        psi, _ = fused.kernel_mlp(rough_x, rough_stages, running, 0.1, None, None, seed, *dropouts, rows, 1e-5)
    found = torch.autograd.grad((psi.float() * pulled.float().to(DEVICE)).sum(), rough)
    assert psi.dtype == torch.bfloat16
    assert relative(psi, expected) < 0.004
    # Some gradients vanish, and rounding is all there is.
    largest = max(float(theirs.norm()) for theirs in wanted)
    for mine, theirs in zip(found, wanted, strict=True):
        assert float((mine.double().cpu() - theirs).norm()) < 0.015 * max(float(theirs.norm()), 0.1 * largest)


def test_padding_is_neither_read_nor_written():
    from ckgconv.backends.cuda.pairs_pass import triton as fused

    stages = random_stages(2, 16, 16, 2)
    x = torch.randn(90, 16, dtype=torch.float64)
    filled = torch.tensor([71], device=DEVICE)
    padded = x.clone()
    padded[71:] = float("nan")
    exact_x, exact_stages, exact = leaves(x[:71], stages, torch.float64, "cpu")
    expected, _ = naive.kernel_mlp(exact_x, exact_stages, None, lambda values, number: values, 1e-5)
    wanted = torch.autograd.grad(expected.square().mean(), exact)
    rough_x, rough_stages, rough = leaves(padded, stages, torch.float32, DEVICE)
    seed = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    running = [(torch.zeros(2, 16, device=DEVICE), torch.ones(2, 16, device=DEVICE)) for _ in stages]
    psi, _ = fused.kernel_mlp(rough_x, rough_stages, running, 0.1, None, filled, seed, 0.0, 0.0, 90, 1e-5)
    found = torch.autograd.grad(psi[:, :71].square().mean(), rough)
    assert relative(psi[:, :71], expected) < 2e-6
    assert (found[0][71:] == 0).all()
    assert relative(found[0][:71], wanted[0]) < 2e-5
    for mine, theirs in zip(found[1:], wanted[1:], strict=True):
        assert relative(mine, theirs) < 5e-5


def test_evaluation_takes_given_moments():
    from ckgconv.backends.cuda.pairs_pass import triton as fused

    stages = random_stages(2, 16, 16, 1, torch.float32)
    x = torch.randn(40, 16)
    expected, moments = naive.kernel_mlp(x, stages, None, lambda values, number: values, 1e-5)
    psi = fused.evaluated_kernel_mlp(
        x.to(DEVICE),
        [Stage(*(field.to(DEVICE) for field in stage)) for stage in stages],
        [(each[1].to(DEVICE), each[2].to(DEVICE)) for each in moments],
        None,
        1e-5,
    )
    assert relative(psi, expected) < 2e-6
