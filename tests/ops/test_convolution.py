from functools import partial

import pytest
import torch
from graphs_for_tests import edge_lists, packed
from hypothesis import given
from hypothesis import strategies as st
from on_device import DEVICE, needs_triton, relative
from torch.autograd import gradcheck

from ckgconv.ops import dispatch
from ckgconv.ops.convolution import (
    Graphs,
    Orders,
    SenderLists,
    naive,
    scaled_convolution,
    segments,
    sparse_global_convolution,
)
from ckgconv.ops.softmax import sparse_global_softmax, support_softmax
from ckgconv.pairs import given_support, global_support
from ckgconv.pe import rrwp, sparse_rrwp

pytestmark = pytest.mark.usefixtures("double")


def loop(x, psi, pairs):
    """Eq. 4 as a loop."""
    y = torch.zeros_like(x)
    for row, (i, j) in enumerate(zip(pairs.receiver.tolist(), pairs.sender.tolist(), strict=True)):
        y[i] += x[j] * psi[row] / pairs.support_size[i]
    return y


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(1, 4), st.integers(0, 2**31))
def test_equals_the_sum_over_the_support(graphs, channels, seed):
    torch.manual_seed(seed)
    batch = packed(*graphs)
    every = global_support(batch, rrwp(batch, 1))
    keep = torch.rand(every.num_pairs) < 0.6  # some receivers lose all their pairs
    pairs = given_support(batch, rrwp(batch, 1), torch.stack([every.receiver, every.sender])[:, keep])
    x, psi = torch.randn(batch.num_nodes, channels), torch.randn(pairs.num_pairs, channels)
    ours = scaled_convolution(x, psi, pairs.receiver, pairs.sender, pairs.support_size)
    torch.testing.assert_close(ours, loop(x, psi, pairs), rtol=0, atol=1e-12)


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(0, 2**31), st.booleans())
def test_sparse_form_equals_dense_sum_and_softmax(graphs, seed, softmax):
    torch.manual_seed(seed)
    batch = packed(*graphs)
    dense, sparse = global_support(batch, rrwp(batch, 2)), global_support(batch, sparse_rrwp(batch, 2))
    x, background = torch.randn(batch.num_nodes, 3), torch.randn(batch.num_graphs, 3)[batch.node_graph]
    psi = torch.randn(sparse.num_pairs, 3)
    full = background[dense.receiver].clone()
    key = dense.receiver * batch.num_nodes + dense.sender
    full[torch.searchsorted(key, sparse.receiver * batch.num_nodes + sparse.sender)] = psi
    if softmax:
        full = support_softmax(full, dense.receiver, batch.num_nodes)
        psi, background = sparse_global_softmax(psi, background, sparse.receiver, sparse.support_size)
    expected = scaled_convolution(x, full, dense.receiver, dense.sender, dense.support_size)
    ours = sparse_global_convolution(
        x, psi, background, sparse.receiver, sparse.sender, sparse.support_size, Graphs(sparse.node_graph)
    )
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-12)


def test_softmax_sums_to_one_and_survives_large_values():
    receiver = torch.tensor([0, 0, 0, 2])
    weights = support_softmax(torch.tensor([[1000.0], [999.0], [-1000.0], [5.0]]), receiver, 3)
    assert torch.isfinite(weights).all()
    assert weights[:3].sum() == 1
    assert weights[3] == 1


def test_background_of_no_pair_has_no_say():
    weights, others = sparse_global_softmax(
        torch.tensor([[-200.0]]), torch.zeros(1, 1), torch.tensor([0]), torch.ones(1)
    )
    assert weights.item() == 1
    assert others.item() == 0


def test_gradients():
    receiver, sender = torch.tensor([0, 0, 1, 3]), torch.tensor([0, 2, 1, 3])
    size, graph = torch.tensor([2.0, 1, 0, 1]), torch.tensor([0, 0, 0, 1])
    x, psi = torch.randn(4, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    background = torch.randn(4, 2, requires_grad=True)
    n = torch.tensor([3.0, 3, 3, 2])
    assert gradcheck(lambda *inputs: scaled_convolution(*inputs, receiver, sender, size), (x, psi))
    assert gradcheck(
        lambda *inputs: sparse_global_convolution(*inputs, receiver, sender, n, Graphs(graph)), (x, psi, background)
    )
    assert gradcheck(lambda values: support_softmax(values, receiver, 4), (psi,))
    assert gradcheck(lambda *inputs: sparse_global_softmax(*inputs, receiver, n), (psi, background))


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(1, 4), st.integers(0, 2**31))
def test_sums_of_rows_equal_the_equation(graphs, channels, seed):
    """Values and gradients, receivers without pairs included."""
    torch.manual_seed(seed)
    batch = packed(*graphs)
    every = global_support(batch, rrwp(batch, 1))
    keep = torch.rand(every.num_pairs) < 0.6
    pairs = given_support(batch, rrwp(batch, 1), torch.stack([every.receiver, every.sender])[:, keep])
    inputs = [torch.randn(rows, channels, requires_grad=True) for rows in (batch.num_nodes, pairs.num_pairs)]
    pulled = torch.randn(batch.num_nodes, channels)
    lists = (pairs.receiver, pairs.sender, pairs.support_size)
    one, other = naive.scaled_convolution(*inputs, *lists), segments.scaled_convolution(*inputs, *lists, pairs.rowptr)
    torch.testing.assert_close(other, one, rtol=0, atol=1e-12)
    wanted, found = (torch.autograd.grad((y * pulled).sum(), inputs) for y in (one, other))
    for mine, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-12)


@given(st.lists(edge_lists(), min_size=1, max_size=3), st.integers(2, 4), st.integers(0, 2**31))
def test_a_kernel_of_one_channel_serves_all_of_the_signal(graphs, channels, seed):
    """Values and gradients of both forms, receivers without pairs included."""
    torch.manual_seed(seed)
    batch = packed(*graphs)
    every = global_support(batch, rrwp(batch, 1))
    keep = torch.rand(every.num_pairs) < 0.6
    pairs = given_support(batch, rrwp(batch, 1), torch.stack([every.receiver, every.sender])[:, keep])
    inputs = [torch.randn(batch.num_nodes, channels), torch.randn(pairs.num_pairs, 1)]
    inputs = [each.requires_grad_() for each in inputs]
    pulled = torch.randn(batch.num_nodes, channels)
    lists = (pairs.receiver, pairs.sender, pairs.support_size)
    wanted = naive.scaled_convolution(inputs[0], inputs[1].expand(-1, channels), *lists)
    for form in (naive.scaled_convolution, partial(segments.scaled_convolution, rowptr=pairs.rowptr)):
        found = form(*inputs, *lists)
        torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)
        gradients = [torch.autograd.grad((y * pulled).sum(), inputs, retain_graph=True) for y in (found, wanted)]
        torch.testing.assert_close(*gradients, rtol=0, atol=1e-12)


def test_gradients_of_row_sums():
    receiver, sender = torch.tensor([0, 0, 1, 3]), torch.tensor([0, 2, 1, 3])
    size, rowptr = torch.tensor([2.0, 1, 0, 1]), torch.tensor([0, 2, 3, 3, 4])
    x, psi = torch.randn(4, 2, requires_grad=True), torch.randn(4, 2, requires_grad=True)
    run = segments.scaled_convolution
    assert gradcheck(lambda *inputs: run(*inputs, receiver, sender, size, rowptr), (x, psi))
    assert gradcheck(lambda values: run(values, psi.detach(), receiver, sender, size, rowptr), (x,))
    assert gradcheck(lambda values: run(x.detach(), values, receiver, sender, size, rowptr), (psi,))


def there(value):
    return value.to(DEVICE)


def random_lists(sizes, padding, share, generator):
    """Pairs of some graphs at random, sorted by receiver; nodes of padding at the end have none."""
    node_ptr = torch.tensor([0, *sizes]).cumsum(0)
    graph = torch.arange(len(sizes) + 1).repeat_interleave(torch.tensor([*sizes, padding]))
    together = (graph[:, None] == graph[None, :]) & (graph < len(sizes))
    receiver, sender = (together & (torch.rand(together.shape, generator=generator) < share)).nonzero().unbind(1)
    node = torch.arange(len(graph) + 1)
    sorted_sender, rows = torch.sort(sender, stable=True)
    by_sender = SenderLists(torch.searchsorted(sorted_sender, node), rows, receiver[rows])
    graph_ptr = torch.cat([node_ptr, torch.tensor([len(graph)])])
    return receiver, sender, torch.searchsorted(receiver, node), by_sender, graph, graph_ptr


@needs_triton
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("sizes", "padding", "share", "width"),
    [([5, 1, 20], 0, 0.5, 20), ([40], 3, 0.9, 8), ([3, 4], 2, 0.0, 64), ([9], 1, 0.3, 70)],
)
def test_sums_over_lists_equal_the_equation(sizes, padding, share, width, dtype, sparse):
    """Values and gradients of the Triton kernels, ψ with a pitch, receivers without pairs included."""
    from ckgconv.ops.convolution import triton as fused

    generator = torch.Generator().manual_seed(width)
    receiver, sender, rowptr, by_sender, graph, graph_ptr = random_lists(sizes, padding, share, generator)
    nodes, pairs = len(graph), len(receiver)
    size = torch.tensor([*sizes, 1])[graph].double() if sparse else rowptr.diff().double()
    shapes = [nodes, pairs, nodes] if sparse else [nodes, pairs]
    exact = [torch.randn(rows, width, generator=generator).to(dtype).double() for rows in shapes]
    rough = [
        exact[0].float(),
        torch.nn.functional.pad(exact[1].to(dtype), (0, 2))[:, :width],
        *map(torch.Tensor.float, exact[2:]),
    ]
    exact = [each.requires_grad_() for each in exact]
    rough = [each.to(DEVICE).requires_grad_() for each in rough]
    pulled = torch.randn(nodes, width, generator=generator).double()
    lists = fused.Lists(*map(there, (rowptr, receiver, sender)), SenderLists(*map(there, by_sender)))
    if sparse:
        expected = naive.sparse_global_convolution(*exact, receiver, sender, size, graph)
        graphs = fused.Graphs(there(graph), there(graph_ptr))
        found = fused.sparse_global_convolution(*rough, there(size.float()), lists, graphs)
    else:
        expected = naive.scaled_convolution(*exact, receiver, sender, size)
        found = fused.scaled_convolution(*rough, there(size.float()), lists)
    assert relative(found, expected) < 1e-6
    wanted = torch.autograd.grad((expected * pulled).sum(), exact)
    gradients = torch.autograd.grad((found * there(pulled.float())).sum(), rough)
    for place, (mine, theirs) in enumerate(zip(gradients, wanted, strict=True)):
        assert mine.dtype == rough[place].dtype
        assert relative(mine, theirs) < (5e-3 if mine.dtype == torch.bfloat16 else 2e-6)


@needs_triton
def test_lists_give_every_channel_the_one_coefficient(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: True)
    generator = torch.Generator().manual_seed(0)
    receiver, sender, rowptr, by_sender, graph, _ = random_lists([6, 3], 1, 0.6, generator)
    x, psi = torch.randn(len(graph), 4, generator=generator), torch.randn(len(receiver), 1, generator=generator)
    expected = naive.scaled_convolution(x, psi, receiver, sender, rowptr.diff().double())
    lists, size = (there(receiver), there(sender)), there(rowptr.diff().float())
    orders = Orders(there(rowptr), SenderLists(*map(there, by_sender)))
    found = scaled_convolution(there(x.float()), there(psi.float()), *lists, size, orders)
    assert relative(found, expected) < 1e-6
