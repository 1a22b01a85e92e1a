"""A training step of the whole network by fused passes, as on a GPU: in Triton's interpreter, on padded batches."""

import gc

import pytest
import torch
from fake_streams import fake_streams
from on_device import DEVICE, needs_triton
from small_data import small_dataset

from ckgconv.backends import accelerate
from ckgconv.backends.cuda.streams import IN_ORDER, SideStreams
from ckgconv.engine.epoch import eager_step, predict_batch
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import Part, evaluation_step, training_step
from ckgconv.nn.drop_path import DropPath
from ckgconv.nn.models import build_model
from ckgconv.recipes import recipe, with_value

pytestmark = needs_triton
CASES = [
    ("zinc", ()),
    ("zinc", ("model.support=2",)),
    ("zinc", ("model.support=sparse_global",)),
    ("zinc", ("model.support=sparse_global", "model.kernel.constraint=softmax")),
    ("zinc", ("model.kernel.constraint=softmax",)),
    ("zinc", ("model.norm=layer",)),
    ("zinc", ("model.encoding=spd",)),
    ("zinc", ("model.degree_scaler=coordinates",)),
    ("mnist", ()),
    ("cluster", ()),
    ("peptides-func", ()),
    ("zinc", ("model.coordinate_features=2", "model.size_features=true")),
    ("zinc", ("model.coordinate_features=2", "model.support=sparse_global")),
    ("zinc", ("model.kernel.norm=rms", "model.head.kind=mlp")),
    ("mnist", ("model.relative_positions=true", "model.coordinate_features=1")),
    # Networks whose parts have fused passes, in an order of their own.
    ("zinc-hybrid-turns", ("model.attention_dropout=0",)),
    ("zinc-hybrid-parallel", ("model.attention_dropout=0", "model.support=2")),
    ("zinc-hybrid-modulated", ("model.attention_dropout=0",)),
    ("zinc-hybrid-modulated", ("model.attention_dropout=0", "model.support=sparse_global")),
]


def learner_of(name, settings, data, precision):
    chosen = recipe(name)
    small = ("model.width=16", "model.blocks=2", "model.steps=3", "model.node_steps=3")
    kernel = ("model.kernel.dropout=0", "model.kernel.mlp_dropout=0") if hasattr(chosen.model, "kernel") else ()
    dry = ("model.dropout=0", *kernel)
    for setting in (*small, *dry, *settings):
        chosen = with_value(chosen, setting)
    torch.manual_seed(3)
    model = build_model(chosen.model).double()
    # Both start from the same weights.
    return make_learner(make_fabric(DEVICE, precision), model if precision == "64" else model.float(), data, chosen)


@pytest.mark.parametrize(("name", "settings"), CASES)
def test_a_fused_step_is_the_plain_one(name, settings, monkeypatch):
    follows(name, settings, "32", 1e-4, monkeypatch)


@pytest.mark.parametrize("name", ["zinc", "zinc-hybrid-turns", "zinc-grit"])
def test_a_fused_step_with_dropped_blocks_is_the_plain_one(name, monkeypatch):
    """Graph 0 of the batch keeps the first block, graph 2 the second; graph 1 is absent."""
    drawn: list[int] = []

    def draw(path, graphs, device):
        drawn.append(graphs)
        block = len(drawn) % 2
        kept = torch.tensor([[1, 0], [1, 0, 0]][graphs == 4] if block else [[0, 1], [0, 0, 1]][graphs == 4])
        return torch.cat([kept, kept.new_ones(1)]).bool().to(device)

    monkeypatch.setattr(DropPath, "draw", draw)
    dry = ("model.attention_dropout=0",) if name != "zinc" else ()
    follows(name, ("model.drop_path=0.5", *dry), "32", 1e-4, monkeypatch)
    assert drawn == [3] * 4 + [4] * 4


@pytest.mark.usefixtures("bfloat16")
@pytest.mark.parametrize("support", ["global", "sparse_global"])
def test_a_fused_step_in_bfloat16_is_near_the_plain_one(support, monkeypatch):
    follows("zinc", (f"model.support={support}",), "bf16", 0.02, monkeypatch)


def test_deferred_launches_write_what_they_would_at_once(monkeypatch):
    """Gradients are passed on before they are written: a copy of one would be uninitialised."""
    data = small_dataset(recipe("zinc"), most=9)
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)

    def gradients(streams):
        fused = learner_of("zinc", (), data, "32")
        source = source_of(fused)
        numbers = torch.tensor([2, -1, 0], device=DEVICE)
        sample = source.sample(fused.data, numbers, source.sizes.needed(torch.tensor([[1, 2, 3]])), "train")
        fused.model.train()
        training_step(fused, sample, lambda loss: None, streams)
        return {name: parameter.grad.clone() for name, parameter in fused.model.named_parameters()}

    at_once = gradients(IN_ORDER)
    if DEVICE == "cuda":
        sides = [torch.cuda.Stream() for _ in range(4)]
    else:
        _, sides, _ = fake_streams(monkeypatch, 4)
    streams = SideStreams(sides, lambda: None)
    for name, gradient in gradients(streams).items():
        assert torch.equal(gradient, at_once[name]), name
    streams.finish()


def test_a_step_leaves_no_tensors_to_the_garbage_collector(monkeypatch):
    """A captured step whose memory only the collector frees outlives the next one: 2.4 GB in place of 0.5."""
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    fused = learner_of("zinc", (), small_dataset(recipe("zinc"), most=7), "32")
    source, numbers = source_of(fused), torch.tensor([2, -1, 0], device=DEVICE)
    sample = source.sample(fused.data, numbers, source.sizes.needed(torch.tensor([[1, 2, 3]])), "train")
    fused.model.train()
    for last in (Part.UPDATE, Part.FORWARD):
        training_step(fused, sample, lambda loss: None, last=last)
        gc.collect()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            training_step(fused, sample, lambda loss: None, last=last)
            gc.collect()
            assert not [each for each in gc.garbage if isinstance(each, torch.Tensor)]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()


@pytest.mark.parametrize("training", [False, True])
def test_blocks_have_a_mode_of_their_own(training, monkeypatch):
    data = small_dataset(recipe("zinc"), most=9)
    learner = learner_of("zinc", (), data, "32")
    batch = learner.batch(torch.tensor([0, 1]))
    learner.model.train(not training)
    learner.model.blocks.train(training)
    with torch.set_grad_enabled(training):
        expected = learner.model(batch)
    before = running(learner.model.blocks)
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    accelerate(learner.model, DEVICE)
    with torch.set_grad_enabled(training):
        found = learner.model(batch)
    moved = any(not torch.equal(value, before[name]) for name, value in running(learner.model.blocks).items())
    assert moved == training
    if training:
        found.sum().backward()
        assert all(parameter.grad is not None for parameter in learner.model.blocks.parameters())
        assert torch.allclose(found, expected, rtol=1e-3, atol=1e-3)


def follows(name, settings, precision, tolerance, monkeypatch):
    """A prediction, the statistics after a step, and the losses of two steps.

    The prediction comes first. Parameters without effect in training, such as biases in front of norms, have gradients
    of pure rounding, which Adam scales up; in evaluation they do have an effect.
    """
    data = small_dataset(recipe(name), most=9)
    numbers = torch.tensor([2, -1, 0])
    graphs = numbers[numbers >= 0]
    plain = learner_of(name, settings, data, "64")
    wanted = predict_batch(plain, plain.batch(graphs))
    plain.model.train()
    expected = [eager_step(plain, graphs)]
    statistics = running(plain.model)
    expected.append(eager_step(plain, graphs))

    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    fused = learner_of(name, settings, data, precision)
    source = source_of(fused)
    capacity = source.sizes.needed(torch.tensor([[1, 2, 3]]))
    sample = source.sample(fused.data, numbers.to(DEVICE), capacity, "train")
    found: list[torch.Tensor] = []
    fused.model.eval()
    evaluation_step(fused, sample, found.append)
    predicted = found[0][: wanted.shape[0]] if data.node_targets else found[0][(numbers >= 0).to(DEVICE)]
    # Products of an evaluation may use tf32 where training is in bfloat16.
    near = 1e-4 if precision == "32" else 2e-3
    assert torch.allclose(predicted.double().cpu(), wanted.cpu(), rtol=near, atol=near)

    fused.model.train()
    training_step(fused, sample, found.append)
    for key, values in running(fused.model).items():
        assert torch.allclose(values.double().cpu(), statistics[key].cpu(), rtol=tolerance, atol=tolerance), key
    training_step(fused, sample, found.append)
    assert [float(loss) for loss in found[1:]] == pytest.approx(expected, rel=tolerance)


def running(model):
    """Running statistics of all norms."""
    return {name: value.clone() for name, value in model.state_dict().items() if "running" in name}


def test_gradients_reach_edge_weights(monkeypatch):
    """By the walks, the node part and the degrees: the plain modules compute what no fused pass does."""
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    data = small_dataset(recipe("zinc"), most=9)
    found = []
    for precision in ("32", "64"):
        model = learner_of("zinc", (), data, precision).model.train()
        batch = data.batch(torch.tensor([0, 1, 2])).to(DEVICE)
        generator = torch.Generator().manual_seed(0)
        weight = torch.rand(batch.edge_index.shape[1], dtype=torch.float64, generator=generator) + 0.5
        batch.edge_weight = weight.to(DEVICE, model.dtype).requires_grad_()
        found.append(torch.autograd.grad(model(batch).sum(), batch.edge_weight)[0])
    assert found[1].abs().max() > 1e-4
    torch.testing.assert_close(found[0].double(), found[1], rtol=1e-3, atol=1e-5)
