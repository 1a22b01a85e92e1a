import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import packed, random_edges

from ckgconv.nn import Kernel
from ckgconv.nn.kernel_operation import in_one_operation
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp

pytestmark = pytest.mark.usefixtures("double")


def some_pairs():
    graphs = packed((6, random_edges(6, 7, 1)), (9, random_edges(9, 10, 2)))
    return global_support(graphs, rrwp(graphs, 3))


@pytest.mark.parametrize("blocks", [0, 2])
def test_weighted_rows_in_one_operation_are_those_of_the_modules(blocks):
    """A hook inside the kernel needs the modules; without one all stages are one operation."""
    pairs = some_pairs()
    rows = pairs.coordinates.shape[0]
    pairs = replace(pairs, row_weight=torch.randint(1, 5, (rows,)).double())
    kernel = Kernel(4, 3, layers=2, blocks=blocks)
    with torch.no_grad():
        for parameter in kernel.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    modules, seen = copy.deepcopy(kernel), []
    modules.linear.register_forward_hook(lambda module, inputs, output: seen.append(output))
    x = torch.randn(rows, 4)
    results = []
    for each in (kernel, modules):
        own = x.clone().requires_grad_()
        y = sum(values.stored.sin().sum() for values in each(own, pairs))
        gradients = torch.autograd.grad(y, [own, *each.parameters()])
        results.append([y, *gradients, *each.buffers()])
    assert len(seen) == 2
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-10)


def test_it_applies_to_weighted_rows_in_training_without_dropout_or_layer_norms():
    x, weight = torch.randn(7, 4), torch.ones(7)
    assert in_one_operation(Kernel(4, 3), x, weight, 0).shape == (7, 3)
    assert in_one_operation(Kernel(4, 3), x, None, 0) is None
    for kernel in (Kernel(4, 3).eval(), Kernel(4, 3, mlp_dropout=0.1), Kernel(4, 3, norm="layer")):
        assert in_one_operation(kernel, x, weight, 0) is None
