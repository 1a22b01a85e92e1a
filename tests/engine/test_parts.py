"""Parts given in Python: a model, loss, metric, optimiser, schedule, callbacks of one's own.

Covers `ckgconv.engine.parts`, `ckgconv.engine.own_model`, `ckgconv.engine.schedule`, `ckgconv.engine.callbacks` and
`ckgconv.engine.opened`.
"""

import json
import math
from dataclasses import replace
from functools import partial

import pytest
import torch
import torchmetrics
from small_data import small_dataset
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR, MultiStepLR, OneCycleLR, ReduceLROnPlateau, StepLR
from torch_geometric.nn import GINConv, global_add_pool

from ckgconv import CKGCN, InputError, OwnMetric, StopTraining, open_run, predict_packed, recipe, train
from ckgconv.engine.learning_rate import learning_rate
from ckgconv.engine.recipe_file import named_or_saved
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.watcher import Silence
from ckgconv.tasks.huber import HUBER
from ckgconv.tasks.losses import LOSSES


@pytest.fixture(autouse=True)
def _checkpoint_every_epoch(monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)


def small(name="zinc", **training):
    chosen = recipe(name)
    settings = {"epochs": 4, "warmup_epochs": 1, "batch_size": 3, **training}
    model = replace(chosen.model, width=8, steps=2, blocks=1)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class Network(nn.Module):
    """A plain PyG network, with a running statistic and dropout."""

    def __init__(self, types=28, outputs=1, pooled=True):
        super().__init__()
        self.embedding = nn.Embedding(types, 8)
        self.convolution = GINConv(nn.Linear(8, 8))
        self.norm = nn.BatchNorm1d(8)
        self.dropout = nn.Dropout(0.2)
        self.head = nn.Linear(8, outputs)
        self.pooled = pooled

    def forward(self, data):
        h = self.embedding(data.x[:, 0].long())
        h = self.dropout(self.norm(self.convolution(h, data.edge_index).relu()))
        return self.head(global_add_pool(h, data.batch) if self.pooled else h)


class StopAfter(Silence):
    """Interrupts a run after some epochs, as a kill would."""

    def __init__(self, epoch):
        self.last = epoch

    def epoch(self, entry):
        if entry.epoch == self.last:
            raise KeyboardInterrupt


def interrupted_equals_whole(folder, chosen, data, epoch=1, **parts):
    """Trains in one piece and in two; returns the resumed run."""
    whole = train(chosen, data=data, device="cpu", **parts)
    with pytest.raises(KeyboardInterrupt):
        train(chosen, data=data, device="cpu", folder=folder, watcher=StopAfter(epoch), **parts)
    resumed = train(chosen, data=data, device="cpu", folder=folder, resume=True, **parts)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert [(entry.train_loss, entry.lr) for entry in resumed.record.epochs] == [
        (entry.train_loss, entry.lr) for entry in whole.record.epochs
    ]
    return resumed


def test_any_module_is_a_model(tmp_path):
    """Trained, killed, resumed, reopened, evaluated and asked for predictions."""
    chosen, network = small(), Network()
    data = small_dataset(chosen)
    before = {name: value.clone() for name, value in network.state_dict().items()}
    run = interrupted_equals_whole(tmp_path / "run", chosen, data, model=network)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())  # a copy is trained
    assert json.loads((tmp_path / "run" / "recipe.json").read_text())["given"] == ["model"]
    assert run.record.recipe["given"] == ["model"]
    opened = open_run(tmp_path / "run", "cpu", data=data, model=network)
    assert opened.evaluate() == pytest.approx(run.record.test)
    values = predict_packed(opened, data)
    torch.testing.assert_close(values.values, predict_packed(run, data).values)
    assert (values.values.shape, values.embeddings.shape) == ((18, 1), (18, 0))
    with pytest.raises(InputError, match="trained with model given in Python: give it again there, as model=…"):
        open_run(tmp_path / "run", "cpu", data=data)
    with pytest.raises(InputError, match="with model given in Python, not with nothing"):
        train(chosen, data=data, device="cpu", folder=tmp_path / "run", resume=True)
    with pytest.raises(InputError, match="not those of its recipe"):
        open_run(tmp_path / "run", "cpu", data=data, model=Network(types=3))
    with pytest.raises(InputError, match="with model given in Python"):
        named_or_saved(str(tmp_path / "run" / "recipe.json"))


def test_a_module_of_nodes_and_in_float64():
    chosen = small("pattern")
    run = train(
        chosen, data=small_dataset(chosen), device="cpu", precision="64", model=lambda: Network(outputs=1, pooled=False)
    )
    assert run.model.dtype == torch.float64
    assert run.model.predicts_nodes
    assert math.isfinite(run.record.epochs[-1].train_loss)


def test_a_function_draws_the_weights_from_the_seed():
    chosen = small(epochs=1)
    data = small_dataset(chosen)
    losses = [train(chosen, seed, data, device="cpu", model=Network).record.epochs[0].train_loss for seed in (0, 0, 1)]
    assert losses[0] == losses[1] != losses[2]


class Embedding(Network):
    def embed(self, data):
        return global_add_pool(self.embedding(data.x[:, 0].long()), data.batch)


def test_features_of_a_module_with_embed():
    chosen = small(epochs=1)
    data = small_dataset(chosen)
    run = train(chosen, data=data, device="cpu", model=Embedding)
    assert predict_packed(run, data).embeddings.shape == (18, 8)


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lambda: Network(outputs=2), r"returned \[1, 2\] for one graph of \d+ nodes, expected \[1, 1\]"),
        (lambda: Network(pooled=False), r"expected \[1, 1\]: return model.head.outputs = 1 numbers per graph"),
        (lambda: nn.Identity(), "has no parameters"),
        (lambda: 3, "model made a int"),
        (lambda: CKGCN.from_recipe("zinc"), "was built from another recipe"),
    ],
)
def test_models_that_do_not_fit_are_refused(model, sentence, tmp_path):
    chosen = small()
    with pytest.raises(InputError, match=sentence):
        train(chosen, data=small_dataset(chosen), device="cpu", folder=tmp_path / "run", model=model)
    assert not (tmp_path / "run").exists()


def test_own_kernels(tmp_path):
    chosen = small()
    data = small_dataset(chosen)
    width = chosen.model.width
    model = CKGCN(chosen.model, kernels=[nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, width))])
    run = interrupted_equals_whole(tmp_path / "run", chosen, data, model=model)
    opened = open_run(tmp_path / "run", "cpu", data=data, model=model)
    assert opened.evaluate() == pytest.approx(run.record.test)
    assert predict_packed(opened, data).embeddings.shape == (18, width)


def test_an_own_loss_trains_as_the_named_one_does(tmp_path):
    for name, function in (("zinc", nn.L1Loss()), ("mnist", nn.CrossEntropyLoss())):
        chosen = small(name)
        data = small_dataset(chosen)
        y = data.y.clone()
        y[data.train[1]] = math.nan if y.is_floating_point() else -1
        data = replace(data, y=y)
        named = train(chosen, data=data, device="cpu", precision="64")
        own = train(chosen, data=data, device="cpu", precision="64", loss=function)
        for one, other in zip(named.record.epochs, own.record.epochs, strict=True):
            assert other.train_loss == pytest.approx(one.train_loss, rel=1e-9)
            assert other.val == pytest.approx(one.val, rel=1e-9)
    chosen = small(scale_targets=True)
    run = interrupted_equals_whole(tmp_path / "run", chosen, small_dataset(chosen), loss=F.mse_loss)
    assert run.recipe.given == ("loss",)
    open_run(tmp_path / "run", "cpu", data=small_dataset(chosen))  # a loss is needed only to train
    train(chosen, data=small_dataset(chosen), device="cpu", loss=HUBER)


def test_own_losses_are_checked():
    chosen = small()
    data = small_dataset(chosen)
    with pytest.raises(InputError, match=r"The loss given returned \[3\]: return one tensor without dimensions"):
        train(chosen, data=data, device="cpu", loss=lambda prediction, target: (prediction - target).abs())
    with pytest.raises(InputError, match=r"The loss is one of classes, but the targets .* are values"):
        train(chosen, data=data, device="cpu", loss=LOSSES["cross_entropy"])
    with pytest.raises(InputError, match="loss is a str"):
        train(chosen, data=data, device="cpu", loss="l1")


def worst(prediction, target):
    """The largest error."""
    return (prediction - target).abs().max()


def test_own_metrics(tmp_path):
    chosen = small()
    data = small_dataset(chosen)
    named = train(chosen, data=data, device="cpu")
    same = train(chosen, data=data, device="cpu", metric=torchmetrics.MeanAbsoluteError())
    assert [entry.val for entry in same.record.epochs] == [entry.val for entry in named.record.epochs]
    assert same.record.metric == "MeanAbsoluteError"
    run = train(
        chosen, data=data, device="cpu", folder=tmp_path / "run", metric=OwnMetric(worst, higher_is_better=False)
    )
    assert run.record.metric == "worst"
    assert run.record.best.val == min(entry.val for entry in run.record.epochs)
    errors = (predict_packed(run, data).values - data.y).abs()[data.test]
    assert run.record.test == pytest.approx(float(errors.max()))
    upward = train(chosen, data=data, device="cpu", metric=OwnMetric(worst, higher_is_better=True))
    assert upward.record.best.val == max(entry.val for entry in upward.record.epochs)
    with pytest.raises(InputError, match="metric given in Python"):
        open_run(tmp_path / "run", "cpu", data=data)
    opened = open_run(tmp_path / "run", "cpu", data=data, metric=OwnMetric(worst, higher_is_better=False))
    assert opened.evaluate() == pytest.approx(run.record.test)
    with pytest.raises(InputError, match="metric is worst, which has no direction"):
        train(chosen, data=data, device="cpu", metric=worst)


def grouped(parameters):
    """Two groups with rates of their own."""
    first, *rest = parameters
    return torch.optim.Adam([{"params": [first], "lr": 0.02}, {"params": rest, "lr": 0.004}])


@pytest.mark.parametrize(
    "optimizer",
    [grouped, partial(torch.optim.SGD, lr=0.05, momentum=0.9), partial(torch.optim.NAdam, lr=0.01)],
    ids=["adam", "sgd", "nadam"],
)
def test_own_optimisers(tmp_path, optimizer):
    chosen = small()
    data = small_dataset(chosen)
    run = interrupted_equals_whole(tmp_path / "run", chosen, data, optimizer=optimizer)
    base = optimizer(run.model.parameters()).param_groups[0]["lr"]
    wanted = [base * learning_rate(epoch, chosen.training) / chosen.training.learning_rate for epoch in range(4)]
    assert [entry.lr for entry in run.record.epochs] == pytest.approx(wanted)
    open_run(tmp_path / "run", "cpu", data=data)


class Counting(torch.optim.SGD):
    """Adapts a number of its group, as optimisers without a schedule do."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["count"] = group.get("count", 0) + 1
            group["weight_decay"] = 0.01 / group["count"]
        return super().step(closure)


def test_numbers_of_the_groups_are_resumed(tmp_path):
    chosen = small()
    interrupted_equals_whole(tmp_path / "run", chosen, small_dataset(chosen), optimizer=partial(Counting, lr=0.05))


class Listing(torch.optim.SGD):
    def step(self, closure=None):
        for group in self.param_groups:
            for parameter in group["params"]:
                self.state[parameter]["past"] = [1, 2]
        return super().step(closure)


def test_own_optimisers_are_checked(tmp_path):
    chosen = small()
    data = small_dataset(chosen)
    with pytest.raises(InputError, match="optimizer made a dict"):
        train(chosen, data=data, device="cpu", optimizer=lambda parameters: {})
    train(chosen, data=data, device="cpu", optimizer=partial(Listing, lr=0.01))
    with pytest.raises(InputError, match="keeps 'past' of each parameter as a list"):
        train(chosen, data=data, device="cpu", folder=tmp_path / "run", optimizer=partial(Listing, lr=0.01))


def test_a_schedule_is_a_function(tmp_path):
    chosen = small()
    run = interrupted_equals_whole(tmp_path / "run", chosen, small_dataset(chosen), schedule=lambda e: 0.01 / (1 + e))
    assert [entry.lr for entry in run.record.epochs] == [0.01, 0.005, 0.01 / 3, 0.0025]
    with pytest.raises(InputError, match="schedule returned 'fast' for epoch 0"):
        train(chosen, data=small_dataset(chosen), device="cpu", schedule=lambda epoch: "fast")
    with pytest.raises(
        InputError, match=r"schedule failed for epoch 0 \(int is not an Optimizer\): .* functools.partial"
    ):
        train(chosen, data=small_dataset(chosen), device="cpu", schedule=lambda optimiser: StepLR(optimiser, 1))


@pytest.mark.parametrize(
    "schedule",
    [
        partial(StepLR, step_size=1, gamma=0.3),
        partial(MultiStepLR, milestones=[1, 3], gamma=0.3),
        partial(CosineAnnealingLR, T_max=4),
        partial(OneCycleLR, max_lr=0.05, total_steps=9),
        partial(ReduceLROnPlateau, patience=0, threshold=100.0, threshold_mode="abs"),
    ],
    ids=lambda made: made.func.__name__,
)
@pytest.mark.parametrize("optimizer", [None, partial(torch.optim.SGD, lr=0.05, momentum=0.9)], ids=["ours", "own"])
def test_a_schedule_is_a_torch_scheduler(tmp_path, schedule, optimizer):
    chosen = small(epochs=6)
    parts = {"schedule": schedule} if optimizer is None else {"schedule": schedule, "optimizer": optimizer}
    run = interrupted_equals_whole(tmp_path / "run", chosen, small_dataset(chosen), epoch=2, **parts)
    parameter = nn.Parameter(torch.zeros(1))
    model = torch.optim.SGD([parameter], lr=0.05 if optimizer else chosen.training.learning_rate, momentum=0.9)
    scheduler, wanted = schedule(model), []
    for entry in run.record.epochs:
        wanted.append(model.param_groups[0]["lr"])
        model.step()
        scheduler.step(*([entry.val] if isinstance(scheduler, ReduceLROnPlateau) else []))
    assert [entry.lr for entry in run.record.epochs] == pytest.approx(wanted)
    assert len(set(wanted)) > 1


class Notes:
    """Keeps what it is called with; stops as it is told."""

    def __init__(self, at=None, how="return"):
        self.at, self.how, self.seen = at, how, []

    def note(self, run, what):
        self.seen.append(what)
        if self.at != what:
            return None
        if self.how == "raise":
            raise StopTraining
        return True


class EpochNotes(Notes):
    def on_epoch(self, run, epoch):
        assert run.record.epochs[-1] is epoch
        return self.note(run, epoch.epoch)


class StepNotes(Notes):
    def on_step(self, run, graphs, loss):
        assert math.isfinite(loss)
        return self.note(run, len(self.seen))


@pytest.mark.parametrize("how", ["return", "raise"])
def test_a_callback_stops_after_an_epoch(tmp_path, how):
    chosen = small()
    data = small_dataset(chosen)
    notes, other = EpochNotes(at=1, how=how), EpochNotes()
    run = train(chosen, data=data, device="cpu", folder=tmp_path / "run", callbacks=[notes, other])
    assert notes.seen == other.seen == [0, 1]
    assert math.isfinite(run.record.test)
    assert run.recipe.given == ()
    continued = train(chosen, data=data, device="cpu", folder=tmp_path / "run", resume=True)
    whole = train(chosen, data=data, device="cpu")
    assert [entry.train_loss for entry in continued.record.epochs] == [
        entry.train_loss for entry in whole.record.epochs
    ]


@pytest.mark.parametrize("how", ["return", "raise"])
def test_a_callback_stops_within_an_epoch(how):
    chosen = small()
    notes = StepNotes(at=2, how=how)
    run = train(chosen, data=small_dataset(chosen), device="cpu", callbacks=[notes])
    assert notes.seen == [0, 1, 2]
    assert [entry.epoch for entry in run.record.epochs] == [0, 1]
    assert run.learner.watched
    assert not run.learner.captures


def test_names_and_callbacks_are_checked():
    chosen = small()
    data = small_dataset(chosen)
    with pytest.raises(InputError, match="train has no argument 'optimiser': did you mean optimizer"):
        train(chosen, data=data, device="cpu", optimiser=torch.optim.SGD)
    with pytest.raises(InputError, match="neither on_step nor on_epoch"):
        train(chosen, data=data, device="cpu", callbacks=[print])
    with pytest.raises(InputError, match="callbacks is not a list"):
        train(chosen, data=data, device="cpu", callbacks=EpochNotes())
    with pytest.raises(InputError, match="The recipe was trained with loss given in Python"):
        train(replace(chosen, given=("loss",)), data=data, device="cpu")


def test_a_loss_with_unknown_shapes_is_never_captured():
    chosen = small(epochs=1)
    run = train(chosen, data=small_dataset(chosen), device="cpu", loss=F.mse_loss)
    assert not run.learner.task.loss.static
    assert not run.learner.captures
