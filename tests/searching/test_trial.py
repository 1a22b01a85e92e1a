import sys
from dataclasses import replace

import pytest

from ckgconv import InputError
from ckgconv.searching import trial as module
from ckgconv.searching.trial import FAILURE, Pruning, main, run_trial, trial_recipe


class Pruned:
    """A trial that is to be pruned after its first report."""

    def __init__(self):
        self.reports = []

    def report(self, value, step):
        self.reports.append((step, value))

    def should_prune(self):
        return True


def test_the_trainer_tells_every_validation_and_stops(search):
    pruning = Pruning(Pruned())
    run = module.train(trial_recipe(search, {}), device="cpu", callbacks=[pruning], test=False)
    assert pruning.pruned
    assert pruning.trial.reports == [(0, run.record.epochs[0].val)]
    assert len(run.record.epochs) == 1


def test_a_trial_in_a_process_of_its_own(search, monkeypatch):
    search.adopt()
    study = search.study()
    trial = study.ask(search.space.distributions())
    arguments = ["trial", str(search.path), str(trial._trial_id), "--device", "cpu"]
    monkeypatch.setattr(sys, "argv", arguments)
    main()
    found = search.study().get_trials()[0]
    assert found.state.name == "COMPLETE"
    assert list(found.intermediate_values) == [0, 1]
    assert found.value == min(found.intermediate_values.values())
    assert found.user_attrs["epochs"] == 2


def test_failures_and_pruned_trials_are_kept(search, monkeypatch):
    search.adopt()
    study = search.study()

    def diverge(*_, **__):
        raise InputError("Training diverged.")

    real = module.train
    monkeypatch.setattr(module, "train", diverge)
    run_trial(search, study, study.ask(search.space.distributions()), module.TrialSettings("cpu"))
    assert study.get_trials()[0].user_attrs[FAILURE] == "Training diverged."
    monkeypatch.setattr(module, "train", real)
    monkeypatch.setattr("optuna.trial.Trial.should_prune", lambda self: True)
    run_trial(search, study, study.ask(search.space.distributions()), module.TrialSettings("cpu"))
    assert [each.state.name for each in study.get_trials()] == ["FAIL", "PRUNED"]


@pytest.mark.parametrize(("epochs", "expected"), [(1, 0), (4, 2), (50, 3)])
def test_the_warm_up_leaves_half_of_the_epochs(search, epochs, expected):
    from ckgconv.recipes import with_value

    recipe = with_value(search.recipe, "training.warmup_epochs=3")
    found = trial_recipe(module.SearchFolder(search.path, recipe, search.space, 0), {"training.epochs": epochs})
    assert found.training.warmup_epochs == expected


def test_a_warm_up_is_shortened_only_for_epochs_that_were_drawn(search):
    slow = replace(search, recipe=replace(search.recipe, training=replace(search.recipe.training, warmup_epochs=2)))
    assert trial_recipe(slow, {}).training.warmup_epochs == 2
    assert trial_recipe(slow, {"training.epochs": 2}).training.warmup_epochs == 1
