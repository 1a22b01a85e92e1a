"""A search: trials, one after the other or several at once, then the best recipe, trained and tested once.

The same call goes on where an earlier one ended, however it ended: trials that were in progress are drawn again. The
first trial has the recipe's own values. No test metric is computed before the last trial has ended.
"""

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from ckgconv.checks import InputError, require
from ckgconv.engine.run import Run, train
from ckgconv.engine.run_folder import has_run
from ckgconv.files import write_text
from ckgconv.recipes import to_json
from ckgconv.searching.study import BEST, RUN, SearchFolder, quiet_optuna
from ckgconv.searching.trial import FAILURE, TrialSettings, run_trial, trial_recipe

Tell = Callable[[str], None]
INTERRUPTED = "interrupted"


@dataclass(frozen=True)
class SearchSettings:
    """How a search is run; none of it changes what is found, but for the order of trials that run at once."""

    trials: int
    at_once: int = 1
    where: TrialSettings = field(default_factory=TrialSettings)


def run_search(search: SearchFolder, settings: SearchSettings, tell: Tell = lambda line: None) -> Run:
    """Run the trials that are left, then train and test the best recipe."""
    require(settings.trials >= 1, f"--trials is {settings.trials}: give at least 1.")
    search.adopt()
    study = search.study()
    done = len(ended(study))
    require(
        not search.tested or done >= settings.trials,
        f"The search in {search.path} has ended with {done} trials, and its best recipe was tested: start another "
        f"search in a new folder, since choosing again would use the test split twice.",
    )
    draw_again(study)
    if not study.get_trials(deepcopy=False):
        study.enqueue_trial(search.space.own_values(search.recipe))
    study = search.study(seed=search.seed + len(study.get_trials(deepcopy=False)))
    if not search.tested:
        _run_trials(search, study, settings, tell)
    completed = [each for each in ended(study) if each.value is not None and each.state.name == "COMPLETE"]
    failures = [each.user_attrs[FAILURE] for each in ended(study) if FAILURE in each.user_attrs]
    reason = f" The last one: {failures[-1]}" if failures else ""
    require(bool(completed), f"No trial in {search.path} has ended with a network.{reason}")
    return final_run(search, study, settings.where, tell)


def final_run(search: SearchFolder, study: Any, where: TrialSettings, tell: Tell = lambda line: None) -> Run:
    """Write best.json, and train and test its recipe; a run that was interrupted goes on."""
    recipe, folder = trial_recipe(search, study.best_params), search.path / RUN
    write_text(search.path / BEST, to_json(recipe))
    tell(f"trial {study.best_trial.number} is the best: it is trained again, and tested")
    return train(
        recipe,
        search.seed,
        data=where.data_dir,
        folder=folder,
        resume=has_run(folder),
        device=where.device,
        precision=search.precision,
    )


def ended(study: Any) -> list[Any]:
    """Trials that have ended in any way but by an interruption."""
    trials = study.get_trials(deepcopy=False)
    return [each for each in trials if each.state.is_finished() and INTERRUPTED not in each.user_attrs]


def draw_again(study: Any) -> None:
    """Trials that a killed process left in progress fail, and their settings are the next to be tried."""
    states = quiet_optuna().trial.TrialState
    for trial in study.get_trials(deepcopy=False, states=(states.RUNNING,)):
        study._storage.set_trial_user_attr(trial._trial_id, INTERRUPTED, True)
        study.tell(trial.number, state=states.FAIL)
        if trial.params:
            study.enqueue_trial(trial.params)


def _run_trials(search: SearchFolder, study: Any, settings: SearchSettings, tell: Tell) -> None:
    """Each thread asks for a trial, runs it and tells of it, until enough have been asked for."""
    distributions, guard, left = search.space.distributions(), Lock(), [settings.trials - len(ended(study))]

    def work() -> None:
        while True:
            with guard:
                if left[0] <= 0:
                    return
                left[0] -= 1
                trial = study.ask(distributions)
            if settings.at_once == 1:
                run_trial(search, study, trial, settings.where)
            else:
                _in_process(search, study, trial, settings.where)
            with guard:
                tell(line_of(search, study, trial.number, settings.trials))

    if settings.at_once == 1:
        work()
        return
    with ThreadPoolExecutor(settings.at_once) as pool:
        for each in [pool.submit(work) for _ in range(settings.at_once)]:
            each.result()


def _in_process(search: SearchFolder, study: Any, trial: Any, where: TrialSettings) -> None:
    """A trial in a process of its own; one that was killed has failed."""
    command = [sys.executable, "-m", "ckgconv.searching.trial", str(search.path), str(trial._trial_id)]
    command += ["--device", where.device, *(["--data-dir", str(where.data_dir)] if where.data_dir else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not study.get_trials(deepcopy=False)[trial.number].state.is_finished():
        last = (done.stderr.strip().splitlines() or [f"its process ended with code {done.returncode}"])[-1]
        trial.set_user_attr(FAILURE, last)
        study.tell(trial, state=quiet_optuna().trial.TrialState.FAIL)


def line_of(search: SearchFolder, study: Any, number: int, trials: int) -> str:
    """What a trial came to, in a line."""
    trial, metric = study.get_trials(deepcopy=False)[number], search.recipe.training.metric
    count = f"trial {number} ({len(ended(study))} of {trials})"
    if trial.state.name == "FAIL":
        return f"{count} failed: {trial.user_attrs.get(FAILURE, 'without a reason')}"
    if trial.state.name == "PRUNED":
        return f"{count} pruned after {trial.user_attrs.get('epochs', 0)} epochs"
    try:
        best = f"best {study.best_value:.4f}, trial {study.best_trial.number}"
    except ValueError as error:  # none has ended
        raise InputError(f"{search.path} has no trial that ended: {error}") from error
    return f"{count}: validation {metric} {trial.value:.4f} ({best})"
