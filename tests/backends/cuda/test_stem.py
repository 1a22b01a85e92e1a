"""The stem by Triton kernels against `nn.stem` in float64: output, statistics and every gradient."""

import copy

import pytest
import torch
from graphs_for_tests import packed, random_edges
from on_device import DEVICE, needs_triton, relative
from torch import nn

from ckgconv.nn.encoders import ConstantEncoder, LinearEncoder
from ckgconv.nn.stem import Edges, NodeStem, PairStem
from ckgconv.pairs import Encoding

pytestmark = needs_triton


@pytest.mark.parametrize(("rows", "channels", "width", "weighted"), [(150, 9, 20, True), (70, 22, 16, False)])
def test_forward_and_backward(rows, channels, width, weighted):
    forward_and_backward(rows, channels, width, weighted)


def test_many_rows(monkeypatch):
    from ckgconv.backends.cuda.stem import launch

    monkeypatch.setattr(launch, "MANY", 100)
    forward_and_backward(230, 9, 20, False)


def test_more_programs_backward_than_parts_forward(monkeypatch):
    from ckgconv.backends.cuda.stem import launch

    monkeypatch.setattr(launch, "FEW_PROGRAMS", 2)
    forward_and_backward(230, 9, 20, True)


def fields_of(stem):
    first, last = stem.encoding_norm, stem.norm
    return [first.scale, first.shift, stem.mix.projection.weight, last.scale, last.shift]


def fused(stem, attributes, x, weight, filled):
    from ckgconv.backends.cuda.pairs_pass.options import rows_of
    from ckgconv.backends.cuda.stem import launch
    from ckgconv.backends.cuda.streams import IN_ORDER

    norms = (stem.encoding_norm, stem.norm)
    rows = rows_of(x, weight, filled)
    parts = launch.encoding_parts(x, stem.mix.width, rows)
    settings = launch.settings_of(x, norms, IN_ORDER)
    e, _, _, part = launch.stem(x, parts, attributes, launch.Parameters(*fields_of(stem)), settings, rows)
    return e, part


def forward_and_backward(rows, channels, width, weighted):
    padding, stem = 11, NodeStem(channels, width).double()
    for parameter in stem.parameters():
        nn.init.normal_(parameter)
    rough_stem = copy.deepcopy(stem).to(DEVICE, torch.float32)
    x = torch.rand(rows, channels, dtype=torch.float64) ** 4 * 20
    weight = torch.randint(0, 4, (rows,)).double() if weighted else None
    attributes = torch.randn(rows, width, dtype=torch.float64, requires_grad=True)
    pulled = torch.randn(rows, width, dtype=torch.float64)
    expected = stem(attributes, x, weight)
    wanted = torch.autograd.grad((expected * pulled).sum(), [attributes, *fields_of(stem)])

    def padded(values):
        nothing = torch.full((padding, *values.shape[1:]), float("nan"), dtype=values.dtype)
        return torch.cat([values.detach(), nothing]).to(DEVICE, torch.float32)

    rough = padded(attributes).requires_grad_()
    found, part = fused(
        rough_stem, rough, padded(x), padded(weight) if weighted else None, torch.tensor([rows], device=DEVICE)
    )
    assert relative(found[:rows], expected) < 2e-6
    assert (found[rows:] == 0).all()
    counts = torch.ones(rows, 1, dtype=torch.float64) if weight is None else weight.unsqueeze(-1)
    mean = (counts * expected).sum(0) / counts.sum()
    squares = (counts * (expected - mean).square()).sum(0)
    assert relative(part, torch.stack([counts.sum().expand_as(mean), mean, squares])) < 2e-6
    for mine, theirs in zip(rough_stem.buffers(), stem.buffers(), strict=True):
        assert relative(mine, theirs) < 2e-6
    gradients = torch.autograd.grad((found[:rows] * pulled.float().to(DEVICE)).sum(), [rough, *fields_of(rough_stem)])
    assert (gradients[0][rows:] == 0).all()
    assert relative(gradients[0][:rows], wanted[0]) < 2e-5
    for mine, theirs in zip(gradients[1:], wanted[1:], strict=True):
        assert relative(mine, theirs) < 5e-5


@pytest.mark.parametrize(
    "kind",
    [lambda: LinearEncoder(2, 4), lambda: LinearEncoder(2, 4, normalise="rows"), lambda: ConstantEncoder(4)],
    ids=["linear", "rows", "constant"],
)
def test_factors_of_edge_attributes_give_the_same_features(kind):
    """Summed on rows before the product, with positions in the same product: values and gradients are unchanged."""
    from ckgconv.backends.cuda.attributes import factored
    from ckgconv.backends.cuda.stem.modules import FusedPairStem
    from ckgconv.backends.cuda.streams import IN_ORDER

    graphs = packed((6, random_edges(6, 7, 1)))
    encoder, encoding = kind().double(), Encoding("rrwp", 2, 0, "global")
    stem = PairStem(encoding, 4, position_channels=2).double()
    pairs = encoding.pairs(graphs, encoding.coordinates(graphs, torch.float64), torch.float64)
    row, raw, position = torch.tensor([3, 3, 7]), torch.randn(3, 2).double(), torch.rand(6, 2).double()
    degree = graphs.degree(torch.float64)
    parameters, pulled = [*encoder.parameters(), *stem.parameters()], torch.randn(36, 4).double()
    expected = stem(pairs, degree, Edges(row, encoder(raw, 3)), position)
    stem.__class__ = FusedPairStem
    found = stem(pairs, degree, factored(encoder, raw, row, IN_ORDER), position)
    torch.testing.assert_close(found, expected)
    wanted = torch.autograd.grad((expected * pulled).sum(), parameters)
    for mine, theirs in zip(torch.autograd.grad((found * pulled).sum(), parameters), wanted, strict=True):
        torch.testing.assert_close(mine, theirs)
