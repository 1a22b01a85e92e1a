"""Ensembles against their members, computed by hand.

Covers `ckgconv.engine.predict_split` and `ckgconv.engine.compatible`.
"""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import Ensemble, InputError, open_run, open_runs, recipe, train
from ckgconv.data import zinc
from ckgconv.engine.ensemble import Combined, metric_of, predicted_outcomes
from ckgconv.engine.predict_split import predict_split
from ckgconv.recipe import SamplingRecipe
from ckgconv.tasks.losses import LOSSES

NAMES = ("zinc", "zinc-grit", "mnist", "pattern", "cluster", "peptides-func", "peptides-struct")


def small(name, **data):
    chosen = recipe(name)
    heads = {"heads": 2} if hasattr(chosen.model, "heads") else {}
    model = replace(chosen.model, width=8, blocks=1, steps=3, **heads)
    training = replace(chosen.training, epochs=1, warmup_epochs=0, batch_size=4)
    return replace(chosen, model=model, training=training, data=replace(chosen.data, **data))


def trained(name="zinc", seed=0, data=None, **more):
    chosen = small(name)
    return train(chosen, seed, data=data or small_dataset(chosen), device="cpu", precision="64", **more)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("split", ["val", "test"])
def test_rows_of_a_split_have_the_metric_of_the_run(name, split):
    run = trained(name)
    outcome, target = predicted_outcomes(run, split)
    assert len(outcome) == len(target) == len(run.learner.data.target_rows(split))
    assert metric_of(run.learner.task, outcome, target) == pytest.approx(run.evaluate(split), abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_the_mean_of_predictions_is_evaluated(name):
    runs = [trained(name, seed) for seed in range(3)]
    found = Ensemble(runs).evaluate("test")
    kept = [predicted_outcomes(run, "test") for run in runs]
    members = torch.stack([outcome for outcome, _ in kept])
    task = runs[0].learner.task
    assert found.members == tuple(pytest.approx(run.evaluate("test")) for run in runs)
    assert found.value == pytest.approx(metric_of(task, members.mean(0), kept[0][1]))
    assert found.median == pytest.approx(metric_of(task, members.median(0).values, kept[0][1]))
    assert found.spread == pytest.approx(float(members.std(0).mean()))
    assert found.metric == runs[0].record.metric
    assert found.cost.parameters == 3 * runs[0].record.parameters
    assert found.cost.training_s == pytest.approx(sum(run.record.wall_s for run in runs), abs=0.002)
    assert found.cost.peak_memory_mb == sum(run.record.peak_memory_mb for run in runs)
    assert found.cost.predicting_s > 0


def test_different_models_are_members_of_one_ensemble():
    data = small_dataset(small("zinc"))
    runs = [trained("zinc", data=data), trained("zinc-grit", data=data)]
    found = Ensemble(runs).predict(data)
    ckgcn, grit = found.members
    assert not torch.allclose(ckgcn, grit)
    assert torch.equal(found.mean, (ckgcn + grit) / 2)
    assert torch.equal(found.median, found.mean)
    torch.testing.assert_close(found.std, (ckgcn - grit).abs() / 2**0.5)
    assert found.graph.tolist() == list(range(data.num_graphs))
    assert found.classes is None
    assert Ensemble(runs).evaluate().value < max(Ensemble(runs).evaluate().members)
    assert repr(Ensemble(runs)) == "Ensemble(zinc with seed 0, zinc-grit with seed 0)"


def test_the_class_is_that_of_the_mean_probability():
    chosen = small("cluster")
    data = small_dataset(chosen)
    found = Ensemble([trained("cluster", seed) for seed in range(2)]).predict(data)
    torch.testing.assert_close(found.mean.sum(1), torch.ones(len(found.mean), dtype=torch.float64))
    assert torch.equal(found.classes, found.mean.argmax(1))
    assert torch.equal(found.node[:3], torch.arange(3))


def test_sampled_and_whole_graph_runs_have_the_same_rows():
    """One reads the large graph layer by layer, the other at once; nodes have splits of their own."""
    chosen = recipe("large-sbm")
    chosen = replace(
        chosen,
        model=replace(chosen.model, width=8, blocks=1, steps=2, support=1),
        training=replace(chosen.training, epochs=1, warmup_epochs=0),
    )
    whole = replace(chosen, training=replace(chosen.training, sampling=SamplingRecipe()))
    data = replace(small_dataset(recipe("cluster"), graphs=1, most=14), node_split=None)
    nodes = len(data.x)
    one_graph = torch.zeros(1, dtype=torch.int64)
    data = replace(
        data,
        x=torch.rand(nodes, chosen.model.node.sizes[0]) if chosen.model.node.kind == "linear" else data.x,
        y=torch.arange(nodes) % chosen.model.head.outputs,
        node_split=torch.arange(nodes) % 3,
        train=one_graph,
        val=one_graph,
        test=one_graph,
    )
    runs = [train(each, data=data, device="cpu", precision="64") for each in (chosen, whole)]
    weights = runs[0].model.state_dict()
    runs[1].model.load_state_dict(weights)
    for split in ("train", "val", "test"):
        one, other = (predict_split(run.learner, split) for run in runs)
        assert torch.equal(one.target, other.target)
        torch.testing.assert_close(one.prediction, other.prediction, atol=1e-10, rtol=0)
        assert Ensemble(runs).evaluate(split).value == pytest.approx(runs[0].evaluate(split))


def test_the_median_of_even_and_odd_numbers():
    members = torch.tensor([1.0, 9.0, 2.0, 4.0], dtype=torch.float64).view(4, 1, 1)
    assert Combined(members).median.item() == 3.0
    assert Combined(members[:3]).median.item() == 2.0
    assert Combined(members).std.item() == pytest.approx(members.flatten().std().item())


@pytest.mark.parametrize(("loss", "outputs"), [("l1", 2), ("cross_entropy", 3), ("weighted_binary", 1), ("binary", 4)])
def test_a_prediction_is_found_again_from_its_outcome(loss, outputs):
    prediction = torch.randn(6, outputs, dtype=torch.float64)
    outcome, classes = LOSSES[loss].outcome(prediction)
    again, same = LOSSES[loss].outcome(LOSSES[loss].prediction_of(outcome))
    torch.testing.assert_close(again, outcome)
    assert (classes is None and same is None) or torch.equal(classes, same)
    certain = LOSSES[loss].prediction_of(torch.ones(1, outputs, dtype=torch.float64))
    assert bool(certain.isfinite().all())


def test_saved_runs_share_their_data(tmp_path, monkeypatch):
    from ckgconv.engine import ensemble

    chosen = small("zinc", limit=6)
    for seed in range(2):
        train(chosen, seed, folder=tmp_path / str(seed), device="cpu")
    read = []
    monkeypatch.setattr(ensemble, "opened_data", lambda *given: read.append(given) or zinc().limited(6))
    opened = open_runs([tmp_path / "0", tmp_path / "1"], device="cpu")
    assert len(read) == 1
    found = opened.evaluate()
    assert found.members == tuple(
        pytest.approx(open_run(tmp_path / name, "cpu").record.test, rel=1e-5) for name in "01"
    )
    molecules = opened.predict(["CCO", "nonsense"])
    assert molecules.reasons[0] == ""
    assert "not a valid SMILES" in molecules.reasons[1]
    assert molecules.mean[0].isfinite().all()
    assert bool(molecules.members[:, 1].isnan().all())
    assert opened.predict([]).mean.shape == (0, 1)
    assert torch.equal(opened.predict("CCO").mean, molecules.mean[:1])


def test_runs_that_do_not_belong_together_are_refused(tmp_path):
    data = small_dataset(small("zinc"))
    run = trained("zinc", data=data)
    with pytest.raises(InputError, match="1 run was given, but an ensemble needs at least 2"):
        Ensemble([run])
    with pytest.raises(InputError, match="zinc with seed 0 was given twice"):
        Ensemble([run, run])
    other = trained("zinc", data=replace(data, y=data.y + 1))
    with pytest.raises(InputError, match=r"same counts .* but other values. Give runs that were trained on the same"):
        Ensemble([run, other])
    split = trained("zinc", data=replace(data, val=data.test, test=data.val[:-1]))
    with pytest.raises(InputError, match="not trained on the data and splits of zinc with seed 0: it has 18 graphs"):
        Ensemble([run, split])
    with pytest.raises(InputError, match=r"\('mnist', not 'zinc'\)"):
        Ensemble([run, trained("mnist")])
    chosen = small("zinc")
    by_rmse = train(replace(chosen, training=replace(chosen.training, metric="rmse")), data=data, device="cpu")
    with pytest.raises(InputError, match="judged by mae, but zinc with seed 0 by rmse"):
        Ensemble([run, by_rmse]).evaluate()
    with pytest.raises(InputError, match="There is no split 'tst'"):
        Ensemble([run, trained("zinc", 1, data=data)]).evaluate("tst")
    with pytest.raises(InputError, match="nowhere is not a folder"):
        open_runs([tmp_path / "nowhere", tmp_path / "there"])
    with pytest.raises(InputError, match="was given twice"):
        open_runs([tmp_path / "a", tmp_path / "." / "a"])


def test_runs_of_earlier_versions_are_compared_by_their_recipes():
    data = small_dataset(small("zinc"))
    one, other = trained("zinc", data=data), trained("zinc", 1, data=data)
    one.record = replace(one.record, data=None)
    assert Ensemble([one, other]).evaluate().value > 0
    other.recipe = replace(other.recipe, data=replace(other.recipe.data, limit=3))
    with pytest.raises(InputError, match=r"data\.limit is 3, not None\. Give runs"):
        Ensemble([one, other])


def test_other_outputs_on_the_same_data_are_refused():
    chosen = small("zinc")
    data = small_dataset(chosen)
    runs = [trained("zinc", seed, data=data) for seed in range(2)]
    runs[1].recipe = replace(runs[1].recipe, data=replace(runs[1].recipe.data, targets=("y",)))
    with pytest.raises(InputError, match=r"differ in their target columns \(none named and y\)"):
        Ensemble(runs)


def test_a_run_without_its_data_or_its_targets_is_not_evaluated(tmp_path):
    data = small_dataset(small("zinc"))
    for seed in range(2):
        trained("zinc", seed, data=replace(data, test=data.test[:0]), folder=tmp_path / str(seed))
    folders = [tmp_path / "0", tmp_path / "1"]
    with pytest.raises(InputError, match="data given in Python"):
        open_runs(folders, device="cpu").evaluate()
    with pytest.raises(InputError, match="no targets in 'test'"):
        open_runs(folders, device="cpu", data=replace(data, test=data.test[:0])).evaluate()
