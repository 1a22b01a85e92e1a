"""Cross-validation: one run per fold, chosen by validation alone, reopened from its folder."""

import json
import math
import statistics
from dataclasses import replace

import pytest
from small_data import small_dataset

from ckgconv import InputError, open_run, recipe, train_folds
from ckgconv.data import load_packed, save_packed
from ckgconv.engine.folds import FoldedRuns
from ckgconv.engine.record import Best
from ckgconv.engine.repeated import mean_and_deviation


def small(**training):
    chosen = recipe("mnist")
    model = replace(chosen.model, width=4, blocks=1, steps=2)
    settings = {"epochs": 3, "warmup_epochs": 0, "batch_size": 8, **training}
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


@pytest.fixture
def packed(tmp_path):
    save_packed(small_dataset(small(), graphs=24), tmp_path / "mine.npz")
    return tmp_path / "mine.npz"


def test_a_run_per_fold_is_kept_and_reopened(tmp_path, packed):
    chosen = replace(small(), data=replace(small().data, name=str(packed)))
    found = train_folds(chosen, folds=3, folder=tmp_path / "cross", device="cpu")
    tests = [run.record.test for run in found.runs]
    assert (found.tested.mean, found.tested.sd) == (statistics.fmean(tests), statistics.stdev(tests))
    written = json.loads((tmp_path / "cross" / "folds.json").read_text())
    assert written == json.loads(json.dumps(found.to_json()))
    assert written["tests"] == tests
    for number, run in enumerate(found.runs):
        assert (run.recipe.data.folds, run.recipe.data.fold) == (3, number)
        assert not run.record.data.given
        assert open_run(tmp_path / "cross" / f"fold{number}", "cpu").evaluate() == pytest.approx(run.record.test)
    assert len({run.record.data.digest for run in found.runs}) == 3
    again = train_folds(chosen, folds=3, folder=tmp_path / "cross", device="cpu", resume=True)
    assert again.tested == found.tested
    with pytest.raises(InputError, match="already exists"):
        train_folds(chosen, folds=3, folder=tmp_path / "cross", device="cpu")


def test_data_given_in_python_is_folded(packed):
    data = load_packed(packed)
    found = train_folds(small(), folds=4, data=data, seed=2, device="cpu")
    assert sum(len(run.learner.data.test) for run in found.runs) == 24
    assert all(run.record.data.given and run.record.seed == 2 for run in found.runs)


def stub(template, curve, test):
    """A run with the given validation curve."""
    epochs = [replace(template.record.epochs[0], epoch=place, val=val) for place, val in enumerate(curve)]
    best = max(range(len(curve)), key=lambda place: curve[place])
    record = replace(template.record, epochs=epochs, best=Best(best, curve[best], test))
    return replace(template, record=record)


@pytest.fixture(scope="module")
def template():
    chosen = small(epochs=1)
    from ckgconv import train

    return train(chosen, data=small_dataset(chosen), device="cpu")


def test_epochs_are_chosen_by_validation_alone(template):
    found = FoldedRuns(
        [
            stub(template, [0.1, 0.6, 0.9], 0.2),
            stub(template, [0.2, 0.8, 0.1], 0.4),
            stub(template, [0.3, 0.7, 0.2, 0.99], 0.6),  # the others have stopped before its last epoch
        ]
    )
    assert found.tested.mean == pytest.approx(0.4)
    assert found.tested.sd == pytest.approx(0.2)
    assert found.validated.mean == pytest.approx((0.9 + 0.8 + 0.99) / 3)
    assert found.common_epoch == 1
    assert (found.at_common_epoch.mean, found.at_common_epoch.sd) == (pytest.approx(0.7), pytest.approx(0.1))
    assert str(found.at_common_epoch) == "0.7000 ± 0.1000"
    worse = [replace(run, record=replace(run.record, best=replace(run.record.best, test=0.0))) for run in found.runs]
    assert FoldedRuns(worse).common_epoch == 1


def test_an_undefined_value_makes_the_spread_undefined(template):
    found = FoldedRuns([stub(template, [0.5], None), stub(template, [0.5], 0.5), stub(template, [0.5], 0.5)])
    assert math.isnan(found.tested.mean)
    assert math.isnan(found.tested.sd)
    assert found.validated.sd == 0
    single = mean_and_deviation([0.5])
    assert single.mean == 0.5
    assert math.isnan(single.sd)


@pytest.mark.parametrize("folds", [2, 2.5, True])
def test_fewer_than_three_folds_are_refused(folds):
    with pytest.raises(InputError, match="folds is"):
        train_folds(small(), folds=folds, device="cpu")
