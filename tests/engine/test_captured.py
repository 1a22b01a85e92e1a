"""Captured steps on a GPU: the same losses as plain torch, step by step."""

import math
from dataclasses import replace

import pytest
import torch
from small_data import small_dataset
from small_models import TRAINED, of_recipe, signed

from ckgconv import recipe, train
from ckgconv.data import load
from ckgconv.engine.epoch import captured_losses, eager_step, evaluate
from ckgconv.engine.replay import padded_table, widened_capacity
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import eager_sample, source_of
from ckgconv.engine.setup import make_fabric, seed_epoch
from ckgconv.engine.step import Part, training_step, update
from ckgconv.engine.watcher import Silence
from ckgconv.nn import CKGCN
from ckgconv.nn.models import build_model
from ckgconv.ops.launch import draw_seeds

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="captured steps need a GPU")
NAMES = ["zinc", "mnist", "cifar10", "pattern", "cluster", "peptides-func"]


def without_dropout(name, **model):
    chosen = recipe(name)
    kernel = replace(chosen.model.kernel, dropout=0.0, mlp_dropout=0.0)
    changed = replace(chosen.model, kernel=kernel, dropout=0.0, **{"steps": 5, **model})
    return replace(chosen, model=changed, training=replace(chosen.training, batch_size=4))


OTHERS_NAMED = ["zinc-gine-plus", "zinc-gatedgcn-plus", "zinc-gps", "zinc-grit", "zinc-hybrid-turns"]


def other_model(name):
    chosen = recipe(name)
    silent = {field: 0.0 for field in ("dropout", "attention_dropout") if hasattr(chosen.model, field)}
    if hasattr(chosen.model, "kernel"):
        silent["kernel"] = replace(chosen.model.kernel, dropout=0.0, mlp_dropout=0.0)
    model = replace(chosen.model, **silent, blocks=4)
    return replace(chosen, model=model, training=replace(chosen.training, batch_size=4))


@pytest.mark.parametrize("name", OTHERS_NAMED)
def test_twenty_steps_of_the_other_models(name, monkeypatch):
    """At the weights of each step, gradients by fused passes are as close to float64 as those of plain torch.

    Losses of two trainings cannot be compared here: signed square roots and kinks of ReLU amplify rounding. Two plain
    trainings of this GRIT on a CPU, in float32 and in float64, have losses 4·10⁻⁵ apart in the second step and 8·10⁻²
    in the fifteenth.
    """
    chosen = other_model(name)
    fused = learner_of(chosen)
    assert fused.captures
    graphs = fused.data.train[torch.randperm(len(fused.data.train)).to(fused.data.train.device)]
    table = padded_table(graphs.cpu(), 4)
    source = source_of(fused)
    capacity = widened_capacity(source.sizes.needed(table))
    with monkeypatch.context() as patch:
        patch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: False)
        plain, exact = learner_of(chosen), learner_of(chosen, "64")
    apart = []
    for numbers in table:
        for each in (fused, exact):
            each.model.load_state_dict(plain.model.state_dict())
        sample = source.sample(fused.data, numbers.to(graphs.device), capacity, "train")
        found = loss_and_gradient(fused, sample)
        with monkeypatch.context() as patch:
            patch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: False)
            expected = loss_and_gradient(exact, eager_sample(exact, numbers.to(graphs.device), "train"))
            reference = loss_and_gradient(plain, eager_sample(plain, numbers.to(graphs.device), "train"))
            update(plain.model, plain.optimizer, plain.recipe)
        assert found[0] == pytest.approx(expected[0], rel=1e-5)
        apart.append([float((each[1] - expected[1]).norm() / expected[1].norm()) for each in (found, reference)])
    assert len(apart) == 20
    # The median: near a kink or the root of zero a single gradient can be wrong in all digits, by either path.
    ours, theirs = torch.tensor(apart).median(0).values.tolist()
    assert ours <= 2 * theirs


def loss_and_gradient(learner, sample):
    """Loss of a step before its update, and the gradient of all parameters as one vector in float64."""
    learner.model.train()
    kept = []
    training_step(learner, sample, kept.append, last=Part.BACKWARD)
    gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in learner.model.parameters()]
    return float(kept[0]), torch.cat([each.double().flatten() for each in gradients])


def learner_of(chosen, precision="32"):
    # With this seed no hidden unit of a ReLU head comes closer to zero than 2·10⁻⁶ in twenty steps, too far for
    # rounding to change its sign. With seed 7 one of CLUSTER is at 10⁻⁸: its gradient depends on the last digit.
    torch.manual_seed(5)
    data = small_dataset(chosen, graphs=240)
    return make_learner(make_fabric("cuda", precision), build_model(chosen.model), data, chosen)


@pytest.mark.parametrize("name", NAMES)
def test_twenty_steps_equal_those_of_plain_torch(name, monkeypatch):
    equals_plain_torch(without_dropout(name), monkeypatch)


def test_twenty_steps_with_positive_kernels(monkeypatch):
    chosen = without_dropout("zinc")
    kernel = replace(chosen.model.kernel, constraint="softmax")
    equals_plain_torch(replace(chosen, model=replace(chosen.model, kernel=kernel)), monkeypatch)


def test_twenty_steps_with_degrees_in_the_coordinates(monkeypatch):
    equals_plain_torch(without_dropout("zinc", degree_scaler="coordinates"), monkeypatch)


def test_twenty_steps_with_sparse_global_support(monkeypatch):
    equals_plain_torch(without_dropout("zinc", support="sparse_global", steps=3), monkeypatch)


@pytest.mark.parametrize("captured", [False, True])
def test_steps_over_one_large_graph(captured, monkeypatch):
    """Ten thousand nodes: programs of the node pass own several tiles. Fused passes one by one, then captured."""

    def by_capture(learner):
        (step,) = captured_losses(learner)
        return step[1]

    def one_by_one(learner):
        learner.model.train()
        return eager_step(learner, learner.data.train)

    monkeypatch.setattr("ckgconv.backends.cuda.supports.MOST_NODES", 2**20)
    found, score = six_steps(by_capture if captured else one_by_one)
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: False)
    expected, reference = six_steps(one_by_one)
    assert ((found - expected).abs() / expected.abs()).max() < 1e-3
    assert score == pytest.approx(reference, abs=2e-3)


def six_steps(step):
    """Losses of six steps over minesweeper, and the validation AUROC after them."""
    chosen = recipe("nodes-heterophilous")
    torch.manual_seed(5)
    model = CKGCN.from_recipe(replace(chosen.model, width=8, blocks=2))
    learner = make_learner(make_fabric("cuda", "32"), model, load(chosen.data), chosen)
    learner.schedule.begin(20)
    return torch.tensor([step(learner) for _ in range(6)]), evaluate(learner, "val")


def test_evaluation_of_the_training_split_changes_no_weight():
    learner = learner_of(without_dropout("zinc"))
    for _ in captured_losses(learner):
        pass
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    assert evaluate(learner, "train") > 0
    for name, value in learner.model.state_dict().items():
        assert torch.equal(value, before[name])


def equals_plain_torch(chosen, monkeypatch):
    captured = learner_of(chosen)
    assert captured.captures
    torch.manual_seed(1)
    found = torch.tensor([loss for _, loss in captured_losses(captured)])
    score = evaluate(captured, "val")

    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: False)
    plain = learner_of(chosen)
    assert not plain.captures
    torch.manual_seed(1)
    graphs = plain.data.train[torch.randperm(len(plain.data.train)).to(plain.data.train.device)]
    plain.model.train()
    expected = torch.tensor([eager_step(plain, batch) for batch in graphs.split(4)])
    assert len(found) == len(expected) == 20
    assert ((found - expected).abs() / expected.abs()).max() < 1e-4
    # With the same weights: parameters without effect in training, such as biases in front of norms, have gradients of
    # pure rounding, which Adam scales up, and in evaluation they do have an effect.
    plain.model.load_state_dict(captured.model.state_dict())
    assert score == pytest.approx(evaluate(plain, "val"), rel=1e-3)


@pytest.mark.parametrize("precision", ["32", "tf32", "bf16"])
@pytest.mark.parametrize("ema_decay", [0.0, 0.9])
def test_a_captured_step_equals_the_eager_one(precision, ema_decay):
    chosen = without_dropout("zinc")
    equals_eager_steps(replace(chosen, training=replace(chosen.training, ema_decay=ema_decay)), precision)


@pytest.mark.parametrize("precision", ["32", "bf16"])
@pytest.mark.parametrize("name", OTHERS_NAMED)
def test_a_captured_step_of_another_model_equals_the_eager_one(name, precision):
    equals_eager_steps(other_model(name), precision)


@pytest.mark.parametrize("precision", ["32", "bf16"])
@pytest.mark.parametrize("small", TRAINED)
def test_steps_of_every_model_are_captured(small, precision):
    """Fused or not; sums of plain torch may be in another order each time, so that losses agree but for rounding."""
    chosen = of_recipe(small, batch_size=4)
    one, other = learner_of(chosen, precision), learner_of(chosen, precision)
    assert one.captures == one.model.static
    if not one.captures:
        return
    found, eager = captured_and_eager(one, other)
    assert all(math.isfinite(loss) for loss in found)
    if not signed(small):  # signs of eigenvectors are drawn anew in every step
        assert found[:5] == pytest.approx(eager[:5], rel=1e-4 if precision == "32" else 2e-2)


def captured_and_eager(one, other):
    """Losses of an epoch in captured steps, and in the same steps one by one."""
    torch.manual_seed(1)
    found = [loss for _, loss in captured_losses(one)]
    source, capacity = source_of(other), one.replays["training"].capacity
    other.model.train()
    eager: list[torch.Tensor] = []
    for numbers in one.replays["training"].table[:-1]:
        training_step(other, source.sample(other.data, numbers, capacity, "train"), eager.append)
    return found, [float(loss) for loss in eager]


def equals_eager_steps(chosen, precision):
    """Bit for bit: both run the same Triton kernels on the same padded batch."""
    one, other = learner_of(chosen, precision), learner_of(chosen, precision)
    found, eager = captured_and_eager(one, other)
    assert found == eager
    for mine, theirs in zip(one.model.state_dict().values(), other.model.state_dict().values(), strict=True):
        assert torch.equal(mine, theirs)
    if chosen.training.ema_decay:
        assert one.average.in_optimizer
        for name, value in one.average.tensors().items():
            assert torch.equal(value, other.average.tensors()[name]), name


OTHERS = [
    {"support": 2},
    {"support": "sparse_global"},
    {"encoding": "spd"},
    {"encoding": "rd"},
    {"encoding": "heat", "steps": 8},
    {"norm": "layer"},
    {"width": 136},
    {"drop_path": 0.2},
    {"coordinate_features": 2, "size_features": True},
    {"encoding": "rrwp_cycles"},
    {"encoding": "rrwp_rings"},
    {"encoding": "rrwp_cycles_rings"},
]


@pytest.mark.parametrize("model", OTHERS)
def test_other_supports_and_encodings_are_captured(model):
    chosen = without_dropout("zinc", **model)
    learner = learner_of(chosen)
    assert learner.captures
    first = sum(loss for _, loss in captured_losses(learner))
    for _ in range(5):
        last = sum(loss for _, loss in captured_losses(learner))
    assert last < first


@pytest.mark.parametrize("precision", ["32", "bf16"])
def test_dropout_runs_repeat_and_resume_bit_for_bit(tmp_path, precision):
    chosen = recipe("zinc")
    chosen = replace(chosen, training=replace(chosen.training, epochs=4, warmup_epochs=1, batch_size=4))
    data = small_dataset(chosen, graphs=60)

    class Stop(Silence):
        def epoch(self, entry):
            if entry.epoch == 1:
                raise KeyboardInterrupt

    whole = train(chosen, data=data, device="cuda", precision=precision)
    again = train(chosen, data=data, device="cuda", precision=precision)
    assert whole.record.epochs[-1].train_loss == again.record.epochs[-1].train_loss
    with pytest.raises(KeyboardInterrupt):
        train(chosen, data=data, device="cuda", precision=precision, folder=tmp_path / "run", watcher=Stop())
    resumed = train(chosen, data=data, device="cuda", precision=precision, folder=tmp_path / "run", resume=True)
    losses = [[entry.train_loss for entry in run.record.epochs] for run in (whole, resumed)]
    assert losses[0] == losses[1]


def test_every_replayed_step_draws_seeds_of_its_own():
    """As eight steps in one CUDA graph draw them, replayed three times in each of three epochs."""
    drawn = torch.zeros(8, 1, dtype=torch.int64, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for step in range(8):
            drawn[step].copy_(draw_seeds(drawn.device, 1)[0])
    found = []
    for epoch in (0, 1, 0):
        seed_epoch(3, epoch)
        for _ in range(3):
            graph.replay()
            found.append(drawn.flatten().tolist())
    assert len({seed for seeds in found[:6] for seed in seeds}) == 48
    assert found[6:] == found[:3]  # so that a resumed run repeats its epoch


def test_a_data_set_in_host_memory_streams_through_a_window(monkeypatch):
    chosen = without_dropout("zinc")
    resident = learner_of(chosen)
    monkeypatch.setattr("ckgconv.engine.window.SHARE", 0.0)
    streamed = learner_of(chosen)
    assert not streamed.data.node_ptr.is_cuda
    losses = []
    for learner in (resident, streamed):
        torch.manual_seed(1)
        losses.append([loss for _, loss in captured_losses(learner)])
    assert losses[0] == losses[1]
    assert evaluate(resident, "val") == evaluate(streamed, "val")
