"""The node pass as Triton kernels against `nn.block` in float64: output, statistics and every gradient."""

import copy

import pytest
import torch
from on_device import DEVICE, keep_mask, needs_triton, relative
from torch import nn

from ckgconv.graphs import Pairs
from ckgconv.nn import KernelConvolution, KernelValues
from ckgconv.nn.block import CKGConvBlock
from ckgconv.nn.channels import Depthwise

pytestmark = needs_triton
SEED = 77


def drawn_blocks(layers, width, ratio, dropout):
    blocks = nn.ModuleList(
        CKGConvBlock(KernelConvolution(Depthwise(width), width), width, dropout=dropout, ffn_ratio=ratio)
        for _ in range(layers)
    ).double()
    for name, parameter in blocks.named_parameters():
        if name.endswith(("scale", "theta1")):
            nn.init.normal_(parameter, 1.0, 0.2)
        elif name.endswith("weight"):
            nn.init.normal_(parameter, std=parameter.shape[1] ** -0.5)
        else:
            nn.init.normal_(parameter, std=0.2 if name.endswith(("shift", "theta2")) else 1.0)
    return blocks


def drawn_support(nodes, longest):
    """Pairs drawn at random, directed, with empty rows and columns, and degrees."""
    present = torch.rand(nodes, nodes) < longest / nodes
    present[3] = False
    present[:, 5] = False
    receiver, sender = present.nonzero().T
    rowptr = torch.cat([torch.zeros(1, dtype=torch.int64), present.sum(1).cumsum(0)])
    size, graph = present.sum(1).double(), torch.zeros(nodes, dtype=torch.int64)
    pairs = Pairs(rowptr, receiver, sender, torch.zeros(len(sender), 1), size, graph, None)
    return pairs, torch.randint(0, 5, (nodes,)).double()


def specified(blocks, x, psi, pairs, degree, monkeypatch, paths=None):
    """x' of the last block, with the dropout masks of the Triton kernels and the given factors of branches [L, N]."""
    asked = []

    def handed(values, probability, training):
        asked.append(probability)
        if not probability:
            return values
        return values * keep_mask(SEED + len(asked) - 1, *values.shape, probability).to(values)

    monkeypatch.setattr("ckgconv.nn.block.dropout", handed)
    for number, (block, kernel) in enumerate(zip(blocks, psi, strict=True)):
        path = None if paths is None else paths[number].unsqueeze(-1)
        x = block(x, KernelValues(kernel, None), pairs, degree, None, path)
    return x


def fields_of(blocks, x):
    from ckgconv.backends.cuda.ckgcn import block_fields

    return [block_fields(block, x) for block in blocks]


def lists_of(pairs, degree, padding=0):
    """The support on the device, by receivers and by senders, with that many padding nodes."""
    from ckgconv.backends.cuda.lists import sorted_by_sender
    from ckgconv.backends.cuda.node_pass.options import Lists

    both = sorted_by_sender(pairs)

    def longer(values):
        return torch.cat([values, values[-1:].expand(padding)])

    lists = Lists(
        longer(both.rowptr),
        both.sender,
        longer(both.sender_ptr),
        both.sender_rows,
        both.sender_receiver,
        longer(both.support_size).float(),
        longer(degree).float(),
    )
    return Lists(*(values.to(DEVICE) for values in lists))


def fused(blocks, x, psi, lists, filled, dropout=0.0, paths=None):
    from ckgconv.backends.cuda.node_pass import launch
    from ckgconv.backends.cuda.node_pass.options import Dropout
    from ckgconv.backends.cuda.streams import IN_ORDER

    norms = [norm for block in blocks for norm in (block.convolution_norm, block.ffn_norm)]
    settings = launch.settings_of(x, [norm.running for norm in norms], norms[0], IN_ORDER)
    fields = fields_of(blocks, x)
    if not blocks.training:
        return launch.evaluated_node_pass(x, psi, lists, fields, settings, filled)
    drop = Dropout(torch.tensor([SEED], device=DEVICE), dropout, paths)
    return launch.node_pass(x, psi, lists, fields, settings, filled, drop)[0]


@pytest.mark.parametrize("many", [0, 64])
@pytest.mark.parametrize(
    ("nodes", "width", "ratio", "layers", "dropout", "padding", "drops_blocks"),
    [(40, 16, 2, 3, 0.0, 0, False), (23, 20, 2, 1, 0.3, 9, False), (50, 24, 3, 2, 0.1, 30, True)],
)
def test_forward_and_backward(nodes, width, ratio, layers, dropout, padding, drops_blocks, many, monkeypatch):
    from ckgconv.backends.cuda.node_pass import forward, gradients

    monkeypatch.setattr(forward, "MANY", many)
    # Above 128 nodes the gradients of matrices have several parts; here above 32.
    monkeypatch.setattr(gradients, "SPAN", 32 if many else gradients.SPAN)
    (pairs, degree), blocks = drawn_support(nodes, 10), drawn_blocks(layers, width, ratio, dropout)
    rough_blocks = copy.deepcopy(blocks).to(DEVICE, torch.float32)
    x = torch.randn(nodes, width, dtype=torch.float64)
    psi = torch.randn(layers, pairs.num_pairs, width, dtype=torch.float64)
    pulled = torch.randn(nodes, width, dtype=torch.float64)
    exact = [x.clone().requires_grad_(), psi.clone().requires_grad_()]
    paths = 1.5 * (torch.rand(layers, nodes) < 0.7).double() if drops_blocks else None
    expected = specified(blocks, *exact, pairs, degree, monkeypatch, paths)
    parameters = [field for each in fields_of(blocks, x) for field in each]
    wanted = torch.autograd.grad((expected * pulled).sum(), [*exact, *parameters])

    def padded(values, amount, dim):
        shape = list(values.shape)
        shape[dim] = amount
        nothing = torch.full(shape, float("nan"), dtype=values.dtype)
        return torch.cat([values, nothing], dim).to(DEVICE, torch.float32).requires_grad_()

    rough = [padded(x, padding, 0), padded(psi, padding, 1)]
    lists, filled = lists_of(pairs, degree, padding), torch.tensor([nodes], device=DEVICE)
    rough_paths = None if paths is None else padded(paths, padding, 1).detach()
    found = fused(rough_blocks, *rough, lists, filled, dropout, rough_paths)
    assert relative(found[:nodes], expected) < 2e-6
    assert (found[nodes:] == 0).all()
    for mine, theirs in zip(rough_blocks.buffers(), blocks.buffers(), strict=True):
        assert relative(mine, theirs) < 2e-6
    inputs = [*rough, *(field for each in fields_of(rough_blocks, rough[0]) for field in each)]
    gradients_found = torch.autograd.grad((found[:nodes] * pulled.float().to(DEVICE)).sum(), inputs)
    assert relative(gradients_found[0][:nodes], wanted[0]) < 2e-5
    assert (gradients_found[0][nodes:] == 0).all()
    assert relative(gradients_found[1][:, : pairs.num_pairs], wanted[1]) < 2e-5
    for mine, theirs in zip(gradients_found[2:], wanted[2:], strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.parametrize("many", [0, 64])
def test_evaluation_takes_running_statistics(many, monkeypatch):
    from ckgconv.backends.cuda.node_pass import forward

    monkeypatch.setattr(forward, "MANY", many)
    (pairs, degree), blocks = drawn_support(30, 8), drawn_blocks(2, 16, 2, 0.0).eval()
    for buffer in blocks.buffers():
        nn.init.uniform_(buffer, 0.5, 2.0)
    x, psi = torch.randn(30, 16).double(), torch.randn(2, pairs.num_pairs, 16).double()
    expected = specified(blocks, x, psi, pairs, degree, monkeypatch)
    rough = copy.deepcopy(blocks).to(DEVICE, torch.float32)
    found = fused(rough, x.float().to(DEVICE), psi.float().to(DEVICE), lists_of(pairs, degree), None)
    assert relative(found, expected) < 2e-6


def test_a_batch_without_nodes_has_finite_gradients():
    (pairs, degree), blocks = drawn_support(20, 5), drawn_blocks(2, 16, 2, 0.0).to(DEVICE, torch.float32)
    x = torch.randn(20, 16, device=DEVICE, requires_grad=True)
    psi = torch.randn(2, pairs.num_pairs, 16, device=DEVICE)
    none = torch.zeros(1, dtype=torch.int64, device=DEVICE)
    torch.use_deterministic_algorithms(True)  # fills what is not written with NaN
    try:
        found = fused(blocks, x, psi, lists_of(pairs, degree), none)
        scales = [block.convolution_norm.scale for block in blocks]
        gradients = torch.autograd.grad(found.sum(), [x, *scales])
    finally:
        torch.use_deterministic_algorithms(False)
    assert (found == 0).all()
    assert all((gradient == 0).all() for gradient in gradients)
