"""Samples of one large graph: exact where they hold everything, resumed bit for bit, shared by processes."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from large_data import large_dataset, large_recipe, learner_of
from on_device import needs_triton

from ckgconv import InputError, predict_packed, train
from ckgconv.engine import checkpoint
from ckgconv.engine.batches import check_sampling
from ckgconv.engine.bench import measure
from ckgconv.engine.epoch import evaluate, train_epoch
from ckgconv.engine.samples import eager_sample
from ckgconv.engine.sampling import fanouts, neighbour_sample, own_graph, part_sample, sampled_steps
from ckgconv.engine.step import training_step
from ckgconv.graphs import LayeredBatch
from ckgconv.recipe import SamplingRecipe

ALL = SamplingRecipe("neighbours", batch_nodes=1000, fanouts=(1000,))
FEW = SamplingRecipe("neighbours", batch_nodes=16, fanouts=(3,))
ONE_PART = SamplingRecipe("parts", batch_nodes=1000, parts=1)
PARTS = SamplingRecipe("parts", batch_nodes=30, parts=9)
SCRIPT = Path(__file__).with_name("sampling_script.py")
EVERYTHING = {"neighbours": ALL, "parts": ONE_PART}


def whole_step(learner, sample):
    """Loss and gradients of a step, before the update."""
    learner.model.train()
    losses = []
    training_step(learner, sample, losses.append)
    return losses[0], {name: value.grad.clone() for name, value in learner.model.named_parameters()}


@pytest.mark.parametrize("kind", ["neighbours", "parts"])
@pytest.mark.parametrize(
    "model", [{"support": 1, "steps": 2}, {"support": 2, "steps": 3, "degree_scaler": "coordinates"}]
)
def test_a_sample_of_everything_is_a_step_on_the_whole_graph(kind, model):
    """Every node is a seed, and every pair is drawn: loss, gradients and batch statistics are those of all nodes."""
    data = large_dataset(edge_types=4)
    data = replace(data, node_split=torch.zeros_like(data.node_split))
    plain = learner_of(large_recipe(SamplingRecipe(), edge_types=4, **model), data)
    learner = learner_of(large_recipe(EVERYTHING[kind], edge_types=4, **model), data)
    expected, gradients = whole_step(plain, eager_sample(plain, torch.tensor([0]), "train"))
    (step,) = sampled_steps(learner)
    assert step[0] == len(data.x)
    found, own = whole_step(learner, step[1]())
    torch.testing.assert_close(found, expected, rtol=1e-11, atol=0)
    for name, value in gradients.items():
        torch.testing.assert_close(own[name], value, rtol=1e-9, atol=1e-11)
    state = learner.model.state_dict()
    for name, value in plain.model.state_dict().items():
        # Layers have samples of their own, so the norms of the pair stem have seen one for each.
        if "running" in name and not name.startswith("pair_stem"):
            torch.testing.assert_close(state[name], value, rtol=1e-9, atol=1e-11)


def test_layers_hold_the_drawn_pairs_and_only_seeds_count():
    data = large_dataset()
    learner = learner_of(large_recipe(replace(FEW, fanouts=(2, 4)), support=2, steps=2), data)
    assert fanouts(learner) == (2, 4)
    graph = own_graph(learner)
    seeds = torch.tensor([0, 10, 89])
    sample = neighbour_sample(learner, graph, seeds)
    assert isinstance(sample.batch, LayeredBatch)
    assert torch.equal(sample.target, data.y[seeds])
    first, last = sample.batch.batches
    assert len(sample.batch.receivers[0]) == len(last.degree)
    assert len(sample.batch.receivers[1]) == 3
    for batch, receivers, fanout in ((first, sample.batch.receivers[0], 2), (last, sample.batch.receivers[1], 4)):
        whole = own_graph(learner).rows.size
        sizes = batch.pairs.support_size
        assert sizes.max() <= fanout
        assert sizes.sum() == sizes[receivers].sum()
        assert whole.max() > fanout
    assert torch.equal(sample.batch.batches[1].degree[sample.batch.receivers[1]], graph.degree[seeds])


def test_training_nodes_of_the_parts_count_once_in_an_epoch():
    data = large_dataset()
    learner = learner_of(large_recipe(PARTS), data)
    steps = list(sampled_steps(learner))
    assert len(steps) == 3
    targets = torch.cat([draw().target for _, draw in steps])
    assert len(targets) == len(data.x)
    assert (targets >= 0).sum() == len(data.target_rows("train")) == sum(count for count, _ in steps)
    nodes = torch.arange(5, 25)
    batch = part_sample(learner, own_graph(learner), nodes).batch
    assert batch.node_weight is None
    whole = learner.model.prepare(learner.batch(torch.tensor([0])))
    inside = torch.isin(whole.pairs.receiver, nodes) & torch.isin(whole.pairs.sender, nodes)
    assert torch.equal(batch.pairs.receiver + 5, whole.pairs.receiver[inside])
    torch.testing.assert_close(batch.pairs.coordinates, whole.pairs.coordinates[inside], rtol=0, atol=1e-14)


@pytest.mark.parametrize("sampling", [FEW, PARTS], ids=["neighbours", "parts"])
def test_a_run_learns_evaluates_all_nodes_and_resumes_bit_for_bit(sampling, tmp_path, monkeypatch):
    data = large_dataset()
    data = replace(data, y=(data.x[:, 0] * 2.999).long())  # a class that a node's own features say
    chosen = large_recipe(sampling, epochs=6)
    whole = train(chosen, data=data, folder=tmp_path / "whole", device="cpu")
    losses = [entry.train_loss for entry in whole.record.epochs]
    assert losses[-1] < losses[0]
    predicted = predict_packed(whole, data)
    rows = data.target_rows("val")
    accuracy = (predicted.classes[rows] == data.y[rows]).double().mean().item()
    assert whole.evaluate("val") == pytest.approx(accuracy)
    assert predicted.embeddings.shape == (len(data.x), 8)
    assert predicted.node.tolist() == list(range(len(data.x)))

    class Stopped(Exception):
        pass

    def stop(epoch, *rest, original=train_epoch):
        if rest[0] == 3:
            raise Stopped
        return original(epoch, *rest)

    monkeypatch.setattr("ckgconv.engine.training.train_epoch", stop)
    with pytest.raises(Stopped):
        train(chosen, data=data, folder=tmp_path / "parts", device="cpu")
    monkeypatch.undo()
    resumed = train(chosen, data=data, folder=tmp_path / "parts", device="cpu", resume=True)
    assert [entry.train_loss for entry in resumed.record.epochs] == losses
    one, two = (checkpoint.load(tmp_path / name / "best")[0] for name in ("whole", "parts"))
    assert all(torch.equal(value, two[key]) for key, value in one.items())


def test_settings_that_do_not_fit_are_refused():
    data = large_dataset()
    with pytest.raises(InputError, match="has 3 numbers for 2 layers: give one, or one for each layer"):
        train(large_recipe(replace(FEW, fanouts=(1, 2, 3))), data=data, device="cpu")
    with pytest.raises(InputError, match="choose a number of hops"):
        train(large_recipe(FEW, support="global"), data=data, device="cpu")
    with pytest.raises(InputError, match=r"training.sampling.parts is 91 for 90 nodes"):
        train(large_recipe(replace(PARTS, parts=91)), data=data, device="cpu")
    with pytest.raises(InputError, match=r"training.sampling.fanouts\[0\] is 0: give at least 1"):
        train(large_recipe(replace(FEW, fanouts=(0,))), data=data, device="cpu")
    with pytest.raises(InputError, match="Steps on whole graphs are timed"):
        measure(learner_of(large_recipe(FEW), data), 1)


def test_graph_targets_and_too_many_processes_are_refused():
    data = large_dataset()
    check_sampling(data, large_recipe(FEW), 16)
    with pytest.raises(InputError, match=r"batch_nodes is 16 for 17 processes, which share it: give at least 17"):
        check_sampling(data, large_recipe(FEW), 17)
    with pytest.raises(InputError, match=r"parts is 9 for 10 processes"):
        check_sampling(data, large_recipe(PARTS), 10)
    with pytest.raises(InputError, match="45 training nodes for 46 processes"):
        check_sampling(data, large_recipe(replace(FEW, batch_nodes=99)), 46)
    graphs = replace(data, node_split=None, y=torch.zeros(1))
    with pytest.raises(InputError, match="the targets are of graphs, not of nodes"):
        check_sampling(graphs, large_recipe(FEW), 1)


@pytest.mark.parametrize("loss", [("l1", "mae", 2), ("binary", "auroc", 2)])
def test_other_targets_are_sampled_too(loss):
    name, metric, outputs = loss
    data = large_dataset()
    y = torch.rand(len(data.x), outputs)
    data = replace(data, y=y if name == "l1" else (y > 0.5).long())
    chosen = large_recipe(FEW)
    head = replace(chosen.model.head, outputs=outputs)
    training = replace(chosen.training, loss=name, metric=metric, scale_targets=name == "l1")
    run = train(replace(chosen, model=replace(chosen.model, head=head), training=training), data=data, device="cpu")
    assert run.evaluate("test") == run.record.best.test


@needs_triton
def test_fused_passes_train_on_samples(monkeypatch):
    """By Triton's interpreter where there is no GPU."""
    data = large_dataset(edge_types=4)
    chosen = large_recipe(FEW, edge_types=4, support=1, steps=2)
    plain = learner_of(chosen, data)
    torch.manual_seed(0)
    samples = [next(sampled_steps(plain))[1]() for _ in range(2)]
    before = evaluate(plain, "val")
    expected = [whole_step(plain, each)[0] for each in samples]
    after = evaluate(plain, "val")
    monkeypatch.setattr("ckgconv.ops.dispatch.runs_triton", lambda device: True)
    fused = learner_of(chosen, data, "32")
    assert type(fused.model).__name__ == "FusedCKGCN"
    torch.manual_seed(0)
    samples = [next(sampled_steps(fused))[1]() for _ in range(2)]
    assert evaluate(fused, "val") == pytest.approx(before)
    for sample, loss in zip(samples, expected, strict=True):
        torch.testing.assert_close(whole_step(fused, sample)[0].double(), loss, rtol=1e-4, atol=1e-4)
    assert evaluate(fused, "val") == pytest.approx(after, abs=0.05)


def in_processes(count: int, *arguments: str) -> None:
    launcher = ["-m", "torch.distributed.run", "--standalone", f"--nproc_per_node={count}"] if count > 1 else []
    done = subprocess.run([sys.executable, *launcher, str(SCRIPT), *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_two_processes_share_the_seeds_of_one_graph(tmp_path):
    """Seeds whose supports are disjoint: the shares of two processes add up to the step of one."""
    for count, name in ((1, "one"), (2, "two")):
        in_processes(count, "neighbours", str(tmp_path / name))
    one, two = (checkpoint.load(tmp_path / name / "best")[0] for name in ("one", "two"))
    for key, value in one.items():
        torch.testing.assert_close(two[key], value, rtol=0, atol=1e-6)
    records = [json.loads((tmp_path / name / "record.json").read_text()) for name in ("one", "two")]
    for entry, other in zip(*(record["epochs"] for record in records), strict=True):
        assert other["train_loss"] == pytest.approx(entry["train_loss"], rel=1e-7)
        assert other["val"] == pytest.approx(entry["val"], rel=1e-7)
    assert records[0]["best"]["test"] == pytest.approx(records[1]["best"]["test"], rel=1e-7)


def test_two_processes_share_the_parts_of_one_graph(tmp_path):
    in_processes(2, "parts", str(tmp_path / "two"))
    record = json.loads((tmp_path / "two" / "record.json").read_text())
    assert record["epochs"][-1]["train_loss"] < record["epochs"][0]["train_loss"]
