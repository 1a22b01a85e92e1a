"""The block pass against `nn.message_passing` in float64: predictions, statistics and every gradient."""

import copy
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from on_device import CUDA, DEVICE, keep_mask, needs_triton, relative
from small_data import padded_and_plain
from torch.utils import _pytree as pytree

from ckgconv import recipe
from ckgconv.backends import accelerate
from ckgconv.backends.cuda import supports
from ckgconv.backends.cuda.supports import message_blocks_reason
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.ops import dispatch

pytestmark = needs_triton
SEED = 77
SIZES = (9, 1, 14)  # two tiles of nodes
ATTENTION = {"attention_heads": 2, "encoding_channels": 4}
CASES = [
    ("zinc-gine-plus", {"width": 12}, SIZES),
    ("zinc-gine-plus", {"width": 72, "blocks": 1, "dropout": 0.3}, (3, 1, 5)),
    ("zinc-gps", {"width": 12, **ATTENTION, "attention_dropout": 0.0}, (35, 1, 2)),  # two tiles of one graph
    ("zinc-gps", {"width": 20, **ATTENTION, "dropout": 0.3}, SIZES),
    ("zinc-gatedgcn-plus", {"width": 12}, SIZES),
    ("zinc-gatedgcn-plus", {"width": 20, "blocks": 3, "dropout": 0.3}, SIZES),
]
PADDED = [(name, changed) for name, changed, _ in CASES[:5:2]]


@pytest.fixture(autouse=True)
def _triton(monkeypatch):
    monkeypatch.setattr(dispatch, "runs_triton", lambda device: device.type == torch.device(DEVICE).type)
    # Memory that no launch has written holds NaN; on a GPU cuBLAS would ask for another workspace.
    torch.use_deterministic_algorithms(not CUDA)
    yield
    torch.use_deterministic_algorithms(False)


def drawn(name, changed) -> MessagePassing:
    """A network whose norms and biases are not those it starts with."""
    values = {"blocks": 2, "dropout": 0.0, **changed}
    torch.manual_seed(0)
    model = MessagePassing(replace(recipe(name).model, **values)).double()
    for part, parameter in model.named_parameters():
        if part.endswith(("scale", "shift", "bias")):
            torch.nn.init.normal_(parameter, float(part.endswith("scale")), 0.2)
    return model


def stepped(model, batch):
    prediction = model(batch)
    prediction.square().sum().backward()
    gradients = {name: parameter.grad for name, parameter in model.named_parameters()}
    return {"prediction": prediction, **gradients, **dict(model.named_buffers())}


def with_masks(monkeypatch):
    """Plain dropout by the masks of the Triton kernels, in the order in which modules ask for them."""
    asked = []

    def handed(values, probability, training):
        asked.append(probability)
        if not probability:
            return values
        return values * keep_mask(SEED + len(asked) - 1, *values.shape, probability).to(values)

    for module in ("message_passing", "gated_gcn", "node_attention"):
        monkeypatch.setattr(f"ckgconv.nn.{module}.dropout", handed)
    seeds = torch.full((1, 1), SEED, device=DEVICE)
    monkeypatch.setattr("ckgconv.backends.cuda.message_passing.draw_seeds", lambda *_: seeds)


def by_receiver(data):
    """The same edges in the order of the pass, in which it counts the entries of a mask."""
    order = torch.sort(data.edge_index[1], stable=True)[1]
    data.edge_index, data.edge_attr = data.edge_index[:, order], data.edge_attr[order]
    return data


@pytest.mark.parametrize(("name", "changed", "sizes"), CASES)
def test_the_pass_computes_what_the_module_does(name, changed, sizes, monkeypatch):
    with_masks(monkeypatch)
    model, data = drawn(name, changed), by_receiver(molecules(*sizes))
    fused = accelerate(copy.deepcopy(model).float(), DEVICE)
    assert message_blocks_reason(fused, fused.prepare(data.clone().to(DEVICE))) is None
    expected, found = stepped(model, data), stepped(fused, data.clone().to(DEVICE))
    for part, value in expected.items():
        if value is None:
            assert found[part] is None, part
        else:
            assert relative(found[part], value) < 1e-4, part


@pytest.mark.parametrize(("name", "changed"), PADDED)
def test_padding_changes_nothing(name, changed):
    model = drawn(name, changed).float()
    batches = padded_and_plain(model, torch.tensor([2, 0, 3]))
    wide, batch = pytree.tree_map_only(torch.Tensor, lambda value: value.to(DEVICE), batches)
    results = []
    for each in (wide, batch):
        fused = accelerate(copy.deepcopy(model), DEVICE)
        assert message_blocks_reason(fused, each) is None
        prediction = fused(each)[:3]
        prediction.square().sum().backward()
        gradients = {part: parameter.grad for part, parameter in fused.named_parameters()}
        results.append({"prediction": prediction, **gradients, **dict(fused.named_buffers())})
    for part, value in results[1].items():
        if value is not None:
            torch.testing.assert_close(results[0][part], value, rtol=1e-4, atol=1e-4, msg=part)


def test_other_blocks_run_one_after_the_other(monkeypatch):
    batch = molecules(2, 1, 9)
    for name, changed in [("zinc-gine-plus", {"ffn": False}), ("zinc-gine-plus", {"activation": "gelu"})]:
        model = drawn(name, {"width": 12, **changed}).float()
        assert message_blocks_reason(model, model.prepare(batch)) is not None
    model = drawn("zinc-gine-plus", {"width": 12}).float()
    assert "evaluation" in (message_blocks_reason(model.eval(), model.prepare(batch)) or "")
    monkeypatch.setattr(supports, "MOST_EDGES", 3)
    monkeypatch.setattr(supports, "LARGEST_ATTENDED", 3)
    gated = drawn("zinc-gatedgcn-plus", {"width": 12}).float()
    assert "edges" in (message_blocks_reason(gated, gated.prepare(batch)) or "")
    gps = drawn("zinc-gps", {"width": 12, **ATTENTION}).float()
    assert "small graphs" in (message_blocks_reason(gps, gps.prepare(batch)) or "")


class Watched:
    """A kernel whose launches tell how far rows of the biases are apart."""

    def __init__(self, kernel, seen):
        self.kernel, self.seen = kernel, seen

    def __getitem__(self, grid):
        def launch(*arguments, **options):
            self.seen.append(options["BIAS_PITCH"])
            return self.kernel[grid](*arguments, **options)

        return launch


def narrow(bias):
    """Biases that are the last columns of a wider kernel, as in a parallel hybrid: rows lie apart."""
    wide = torch.full((bias.shape[0], 24), float("nan"), device=bias.device)
    return torch.cat([wide, bias], dim=1)[:, 24:]


def pitched(bias):
    """Biases whose rows are as far apart as those of a kernel of their own."""
    apart = torch.full((bias.shape[0], 6), float("nan"), device=bias.device)
    return torch.cat([bias, apart], dim=1)[:, :2]


@pytest.mark.parametrize("laid", [lambda bias: bias, pitched, narrow, lambda bias: bias.T.contiguous().T])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_attention_with_a_bias_for_each_pair(dropout, laid, monkeypatch):
    from ckgconv.backends.cuda.block_pass import attention
    from ckgconv.backends.cuda.block_pass.attention import DRAW, Graphs, graph_attention

    sizes, heads, channels, padding = torch.tensor([3, 0, 35, 1]), 2, 5, 2
    nodes, pairs, width = int(sizes.sum()), int((sizes**2).sum()), heads * channels
    qkv = torch.randn(nodes, 3 * width, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(pairs, heads, dtype=torch.float64, requires_grad=True)
    mask = keep_mask(SEED + DRAW, pairs, heads, dropout).double() if dropout else torch.ones(pairs, heads)
    expected, first, row = [], 0, 0
    for size in sizes.tolist():
        q, k, v = qkv[first : first + size].view(size, 3, heads, channels).unbind(1)
        own = [values[row : row + size**2].view(size, size, heads) for values in (bias, mask)]
        weights = torch.softmax(torch.einsum("ihc,jhc->ijh", q, k) / channels**0.5 + own[0], dim=1) * own[1]
        expected.append(torch.einsum("ijh,jhc->ihc", weights, v).reshape(size, width))
        first, row = first + size, row + size**2
    pulled = torch.randn(nodes, width, dtype=torch.float64)
    wanted = torch.autograd.grad((torch.cat(expected) * pulled).sum(), [qkv, bias])

    def padded(values, rows):
        nothing = torch.full((rows, values.shape[1]), float("nan"))
        return torch.cat([values.detach().float(), nothing]).to(DEVICE).requires_grad_()

    given = padded(qkv, padding), padded(bias, 3)
    per_node = sizes.repeat_interleave(sizes)
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), per_node.cumsum(0), torch.full((padding,), pairs)])
    starts = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    graphs = Graphs(starts.to(DEVICE), ends.to(DEVICE))
    widest = []
    monkeypatch.setattr(attention, "attend_backward", Watched(attention.attend_backward, widest))
    found = graph_attention(given[0], laid(given[1]), graphs, heads, dropout, torch.tensor([SEED], device=DEVICE))
    assert relative(found[:nodes], torch.cat(expected)) < 5e-6
    gradients = torch.autograd.grad((found[:nodes] * pulled.float().to(DEVICE)).sum(), given)
    assert widest[0] <= 8  # the gradient of the biases is not as wide as the kernel they were cut from
    for mine, theirs in zip(gradients, wanted, strict=True):
        assert relative(mine[: len(theirs)], theirs) < 5e-6
        assert (mine[len(theirs) :] == 0).all()
