"""Covers `ckgconv.nn.initialise`."""

import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch import nn
from torch.nn import functional as F

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
