"""Derivatives beyond the first of every operation whose backward pass is written by hand."""

import pytest
import torch
from on_device import DEVICE, needs_triton, relative
from torch.autograd import gradgradcheck
from torch.func import grad, hessian, jvp, vmap

from ckgconv import InputError
from ckgconv.ops import convolution, dispatch, lookup, mean_absolute_error, pool
from ckgconv.ops.batch_norm import analytic
from ckgconv.ops.convolution import Graphs, Orders, SenderLists, segments
from ckgconv.ops.derivatives import (
    assign,
    first_derivatives_only,
    readable,
    specification_gradients,
    under_transform,
    will_be_differentiated,
)
from ckgconv.ops.dropout import packed

RECEIVER, SENDER = torch.tensor([0, 0, 1, 3]), torch.tensor([0, 2, 1, 3])
SIZE, ROWPTR = torch.tensor([2.0, 1, 0, 1], dtype=torch.float64), torch.tensor([0, 2, 3, 3, 4])


def numbers(*shape):
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def normed(x, scale, shift):
    return analytic.weighted_batch_norm(x, torch.tensor([1.0, 0, 4, 2], dtype=torch.float64), scale, shift, 1e-5)[0]


def convolved(x, psi):
    return segments.scaled_convolution(x, psi, RECEIVER, SENDER, SIZE, ROWPTR)


def dropped(x):
    torch.manual_seed(3)
    return packed.dropout(x, 0.4) ** 2


OPERATIONS = {
    "norm": (normed, ((4, 3), (3,), (3,))),
    "convolution": (convolved, ((4, 2), (4, 2))),
    "dropout": (dropped, ((5, 3),)),
}
every_operation = pytest.mark.parametrize("name", OPERATIONS)


@every_operation
def test_second_derivatives(name):
    operation, shapes = OPERATIONS[name]
    assert gradgradcheck(operation, tuple(numbers(*shape) for shape in shapes))


@every_operation
def test_a_constant_gradient_still_depends_on_the_input(name):
    """The second derivative of a sum: here torch's `once_differentiable` would return zeros without an error."""
    operation, shapes = OPERATIONS[name]
    inputs = [numbers(*shape) for shape in shapes]
    for first in torch.autograd.grad(operation(*inputs).square().sum(), inputs, create_graph=True):
        assert first.requires_grad


@every_operation
def test_many_gradients_at_once(name):
    """`is_grads_batched`, by which `torch.autograd.functional` computes rows of a Jacobian together."""
    operation, shapes = OPERATIONS[name]
    inputs = [numbers(*shape) for shape in shapes]
    y = operation(*inputs)
    pulled = torch.randn(3, *y.shape, dtype=torch.float64)
    together = torch.autograd.grad(y, inputs, pulled, is_grads_batched=True, retain_graph=True)
    for place, one in enumerate(pulled):
        for mine, theirs in zip(together, torch.autograd.grad(y, inputs, one, retain_graph=True), strict=True):
            torch.testing.assert_close(mine[place], theirs, rtol=1e-10, atol=1e-12)


def test_an_input_that_depends_on_another_gets_its_own_gradient_only():
    x = numbers(4, 2)
    psi = x.sin()
    found = torch.autograd.grad(convolved(x, psi).sum(), [x, psi], create_graph=True)
    wanted = torch.autograd.grad(convolved(x, psi).sum(), [x, psi])
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs)
    own = specification_gradients(lambda one, other: one * other, (x, psi), (True, False), torch.ones_like(x))
    torch.testing.assert_close(own[0], psi)
    assert own[1] is None


def test_transforms_and_forward_mode_are_seen():
    seen = []

    def spy(x):
        seen.append(under_transform())
        return x.sum()

    x = torch.randn(3)
    spy(x)
    for run in (grad(spy), vmap(spy), hessian(spy), lambda values: jvp(spy, (values,), (values,))):
        run(x)
    with torch.autograd.forward_ad.dual_level():
        spy(x)
    assert seen == [False, True, True, True, True, True]
    assert not dispatch.uses_triton(x)


def test_operations_under_transforms_equal_their_derivatives():
    x, psi = numbers(4, 2), numbers(4, 2)

    def run(values):
        return (
            convolution.scaled_convolution(values, psi.detach(), RECEIVER, SENDER, SIZE, Orders(ROWPTR)).square().sum()
            + normed(values, torch.ones(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64)).sin().sum()
        )

    expected = torch.autograd.functional.hessian(run, x)
    torch.testing.assert_close(hessian(run)(x.detach()), expected)
    torch.testing.assert_close(vmap(run)(torch.stack([x, 2 * x])), torch.stack([run(x), run(2 * x)]))
    tangent = torch.randn_like(x)
    torch.testing.assert_close(
        jvp(run, (x.detach(),), (tangent,))[1], (torch.autograd.grad(run(x), x)[0] * tangent).sum()
    )


def test_statistics_are_written_under_transforms():
    held = torch.zeros(3)

    def run(x):
        assign(held, x.mean(0))
        return x.square().sum()

    x = torch.randn(5, 3)
    for transform in (run, grad(run), lambda values: jvp(run, (values,), (values,)), hessian(run)):
        held.zero_()
        transform(x)
        torch.testing.assert_close(held, x.mean(0))
    with pytest.raises(InputError, match="stack_module_state"):
        vmap(run)(torch.stack([x, x]))


def test_statistics_of_ensembles_are_written_to_each_member():
    def run(x, held):
        assign(held, x.mean(0) + 0 * held)
        return x.square().sum()

    x, held, turned = torch.randn(2, 4, 5, 3), torch.zeros(2, 4, 3), torch.zeros(3, 4, 2)
    vmap(vmap(run))(x, held)
    torch.testing.assert_close(held, x.mean(2))
    vmap(vmap(run), in_dims=(0, 2))(x, turned.transpose(0, 1))
    torch.testing.assert_close(turned.permute(2, 1, 0), x.mean(2))
    held.zero_()
    vmap(grad(lambda values, own: vmap(run)(values, own).sum()))(x, held)
    torch.testing.assert_close(held, x.mean(2))


def test_values_under_vmap_cannot_be_read():
    answers = []

    def run(x):
        answers.append(readable(x))
        return x.sum()

    x = torch.randn(2, 3)
    run(x)
    grad(run)(x)
    vmap(run)(x)
    vmap(grad(run))(x)
    assert answers == [True, True, False, False]


def test_a_pass_without_specification_refuses_second_derivatives():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.square()

        @staticmethod
        @first_derivatives_only("the pass of this test")
        def backward(ctx, gradient):
            assert not will_be_differentiated(gradient)
            return 2 * ctx.saved_tensors[0] * gradient

    x = torch.tensor([3.0], requires_grad=True)
    assert torch.autograd.grad(Square.apply(x), x)[0] == 6
    sentence = r"the pass of this test computes first derivatives only: .* ckgconv\.backends\.plain\(model\)"
    with pytest.raises(InputError, match=sentence):
        torch.autograd.grad(Square.apply(x), x, create_graph=True)


def test_several_processes_refuse_second_derivatives(monkeypatch):
    monkeypatch.setattr(analytic, "several_processes", lambda: True)
    inputs = [numbers(4, 3), numbers(3), numbers(3)]
    y = normed(*inputs).sum()
    with pytest.raises(InputError, match="use one process"):
        torch.autograd.grad(y, inputs, create_graph=True)


@pytest.fixture
def kernels(monkeypatch):
    """Triton kernels, by the interpreter where there is no GPU."""
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: True)


def second_derivatives(run, *inputs):
    """Of a scalar that is not linear in any input, along the first ones."""
    inputs = [value.clone().requires_grad_() for value in inputs]
    first = torch.autograd.grad(run(*inputs).sin().sum(), inputs, create_graph=True)
    return torch.autograd.grad(sum((one * one.detach().sin()).sum() for one in first), inputs)


BY_SENDER = SenderLists(torch.tensor([0, 1, 2, 3, 4]), torch.tensor([0, 2, 1, 3]), torch.tensor([0, 1, 0, 3]))
NODE_PTR, NODE_GRAPH, INDEX = torch.tensor([0, 3, 4]), torch.tensor([0, 0, 0, 1]), torch.tensor([2, 0, 2, 1])
TARGET = torch.tensor([4, 1, 1, 0])


def there(value):
    return value.to(DEVICE)


def triton_runs():
    indices = [there(value) for value in (RECEIVER, SENDER)]
    orders = Orders(there(ROWPTR), SenderLists(*map(there, BY_SENDER)))
    graphs, ptr, graph = Graphs(there(NODE_GRAPH), there(NODE_PTR)), there(NODE_PTR), there(NODE_GRAPH)
    index, target = there(INDEX), there(TARGET)

    def size(x):
        return there(SIZE).to(x.dtype)

    def in_graph(x):
        return there(torch.tensor([3.0, 3, 3, 1])).to(x.dtype)

    return {
        "convolution": (lambda x, p: convolution.scaled_convolution(x, p, *indices, size(x), orders), 2),
        "sparse": (
            lambda x, p, b: convolution.sparse_global_convolution(x, p, b, *indices, in_graph(x), graphs, orders),
            3,
        ),
        "sum": (lambda x: pool.pool(x, graph, ptr, "sum"), 1),
        "mean": (lambda x: pool.pool(x, graph, ptr, "mean"), 1),
        "spread": (lambda x: pool.spread(x[:2], graph, ptr), 1),
        "lookup": (lambda x: lookup.lookup(index, x), 1),
        "onto": (lambda x: lookup.lookup_onto(index, target, x, 5), 1),
        "error": (lambda x, y: mean_absolute_error.mean_absolute_error(x, y.detach()), 2),
    }


@needs_triton
@pytest.mark.usefixtures("kernels")
@pytest.mark.parametrize("name", ["convolution", "sparse", "sum", "mean", "spread", "lookup", "onto", "error"])
def test_second_derivatives_of_triton_kernels(name):
    """Float64 runs as plain torch."""
    run, arguments = triton_runs()[name]
    exact = [torch.randn(4, 8, dtype=torch.float64, device=DEVICE) for _ in range(arguments)]
    if name == "error":
        run, exact = (lambda x, run=run: run(x, torch.zeros_like(x))), exact[:1]
    found = second_derivatives(run, *(value.float() for value in exact))
    for mine, theirs in zip(found, second_derivatives(run, *exact), strict=True):
        assert relative(mine, theirs) < 1e-5
