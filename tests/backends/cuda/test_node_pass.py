"""The node pass as Triton kernels against its equations: output, moments and every gradient."""

import pytest
import torch
from on_device import DEVICE, keep_mask, needs_triton, relative

from ckgconv.backends.cuda.node_pass import naive
from ckgconv.backends.cuda.node_pass.naive import Block, Lists

pytestmark = needs_triton


def random_blocks(layers, width, hidden):
    def draw(*shape, spread=1.0, around=0.0):
        return around + spread * torch.randn(*shape, dtype=torch.float64)

    return [
        Block(
            theta1=draw(width, around=1.0, spread=0.1),
            theta2=draw(width, spread=0.3),
            weight=draw(width, width, spread=width**-0.5),
            bias=draw(width),
            scale=draw(width, around=1.0, spread=0.2),
            shift=draw(width, spread=0.2),
            weight_in=draw(hidden, width, spread=width**-0.5),
            bias_in=draw(hidden),
            weight_out=draw(width, hidden, spread=hidden**-0.5),
            bias_out=draw(width),
            scale_out=draw(width, around=1.0, spread=0.2),
            shift_out=draw(width, spread=0.2),
        )
        for _ in range(layers)
    ]


def random_lists(nodes, longest):
    """A support drawn at random, directed, with empty rows and columns."""
    present = torch.rand(nodes, nodes) < longest / nodes
    present[3] = False
    present[:, 5] = False
    receiver, sender = present.nonzero().T
    order = torch.argsort(sender, stable=True)

    def pointer(index):
        return torch.cat([torch.zeros(1, dtype=torch.int64), torch.bincount(index, minlength=nodes).cumsum(0)])

    return Lists(
        rowptr=pointer(receiver),
        sender=sender,
        sender_ptr=pointer(sender),
        sender_rows=order,
        sender_receiver=receiver[order],
        support_size=present.sum(1).double(),
        degree=torch.randint(0, 5, (nodes,)).double(),
    )


def moved(values, dtype):
    return type(values)(*(v.to(DEVICE, dtype) if v.is_floating_point() else v.to(DEVICE) for v in values))


@pytest.mark.parametrize("many", [0, 64])
@pytest.mark.parametrize(
    ("nodes", "width", "hidden", "layers", "dropout", "padding"),
    [(40, 16, 32, 3, 0.0, 0), (23, 20, 40, 1, 0.3, 9), (50, 24, 72, 2, 0.1, 30)],
)
def test_forward_and_backward(nodes, width, hidden, layers, dropout, padding, many, monkeypatch):
    from ckgconv.backends.cuda.node_pass import forward_pass, gradients
    from ckgconv.backends.cuda.node_pass import triton as fused

    monkeypatch.setattr(forward_pass, "MANY", many)
    # Of more than 128 nodes the gradients of matrices have several parts; here of more than 32.
    monkeypatch.setattr(gradients, "SPAN", 32 if many else gradients.SPAN)
    lists, blocks = random_lists(nodes, 10), random_blocks(layers, width, hidden)
    pairs = lists.sender.shape[0]
    x = torch.randn(nodes, width, dtype=torch.float64)
    psi = torch.randn(layers, pairs, width, dtype=torch.float64)
    pulled = torch.randn(nodes, width, dtype=torch.float64)

    def drop(values, number):
        return values * keep_mask(77 + number, nodes, width, dropout).to(values) if dropout else values

    exact = [v.clone().requires_grad_() for v in (x, psi, *(field for each in blocks for field in each))]
    exact_blocks = [Block(*exact[2 + 12 * number : 14 + 12 * number]) for number in range(layers)]
    expected, expected_moments = naive.node_pass(exact[0], exact[1], lists, exact_blocks, None, drop, 1e-5)
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)

    def padded(values, amount, dim):
        shape = list(values.shape)
        shape[dim] = amount
        return torch.cat([values, torch.full(shape, float("nan"), dtype=values.dtype)], dim)

    def longer(values):
        return torch.cat([values, values[-1:].expand(padding)])

    rough_lists = lists._replace(
        rowptr=longer(lists.rowptr),
        sender_ptr=longer(lists.sender_ptr),
        support_size=longer(lists.support_size),
        degree=longer(lists.degree),
    )
    rough = [padded(x, padding, 0), padded(psi, padding, 1), *(field for each in blocks for field in each)]
    rough = [v.to(DEVICE, torch.float32).requires_grad_() for v in rough]
    rough_blocks = [Block(*rough[2 + 12 * number : 14 + 12 * number]) for number in range(layers)]
    running = [(torch.zeros(width, device=DEVICE), torch.ones(width, device=DEVICE)) for _ in range(2 * layers)]
    found, moments = fused.node_pass(
        rough[0],
        rough[1],
        moved(rough_lists, torch.float32),
        rough_blocks,
        running,
        0.1,
        torch.tensor([nodes], device=DEVICE),
        torch.tensor([77], device=DEVICE),
        dropout,
        1e-5,
    )
    assert relative(found[:nodes], expected) < 2e-6
    assert (found[nodes:] == 0).all()
    assert relative(moments, expected_moments) < 2e-6
    for (mean, variance), (_, batch_mean, batch_variance) in zip(running, expected_moments.flatten(0, 1), strict=True):
        assert relative(mean, 0.1 * batch_mean) < 2e-6
        assert relative(variance, 0.9 + 0.1 * batch_variance * nodes / (nodes - 1)) < 2e-6
    gradients = torch.autograd.grad((found[:nodes] * pulled.float().to(DEVICE)).sum(), rough)
    assert relative(gradients[0][:nodes], wanted[0]) < 2e-5
    assert (gradients[0][nodes:] == 0).all()
    assert relative(gradients[1][:, :pairs], wanted[1]) < 2e-5
    for mine, theirs in zip(gradients[2:], wanted[2:], strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.parametrize("many", [0, 64])
def test_evaluation_takes_given_moments(many, monkeypatch):
    from ckgconv.backends.cuda.node_pass import forward_pass
    from ckgconv.backends.cuda.node_pass import triton as fused

    monkeypatch.setattr(forward_pass, "MANY", many)
    lists, blocks = random_lists(30, 8), random_blocks(2, 16, 32)
    x, psi = torch.randn(30, 16).double(), torch.randn(2, lists.sender.shape[0], 16).double()
    expected, moments = naive.node_pass(x, psi, lists, blocks, None, lambda values, number: values, 1e-5)
    found = fused.evaluated_node_pass(
        x.float().to(DEVICE),
        psi.float().to(DEVICE),
        moved(lists, torch.float32),
        [moved(each, torch.float32) for each in blocks],
        [(each[1].float().to(DEVICE), each[2].float().to(DEVICE)) for each in moments.flatten(0, 1)],
        None,
        1e-5,
    )
    assert relative(found, expected) < 2e-6


def test_a_batch_without_nodes_has_finite_gradients():
    from ckgconv.backends.cuda.node_pass import triton as fused

    lists = moved(random_lists(20, 5), torch.float32)
    blocks = [moved(each, torch.float32) for each in random_blocks(2, 16, 32)]
    x = torch.randn(20, 16, device=DEVICE, requires_grad=True)
    psi = torch.randn(2, lists.sender.shape[0], 16, device=DEVICE)
    for each in blocks:
        each.scale.requires_grad_()
    running = [(torch.zeros(16, device=DEVICE), torch.ones(16, device=DEVICE)) for _ in range(4)]
    none, seed = torch.zeros(1, dtype=torch.int64, device=DEVICE), torch.tensor([77], device=DEVICE)
    torch.use_deterministic_algorithms(True)  # fills what is not written with NaN
    try:
        found, _ = fused.node_pass(x, psi, lists, blocks, running, 0.1, none, seed, 0.0, 1e-5)
        gradients = torch.autograd.grad(found.sum(), [x, *(each.scale for each in blocks)])
    finally:
        torch.use_deterministic_algorithms(False)
    assert (found == 0).all()
    assert all((gradient == 0).all() for gradient in gradients)
