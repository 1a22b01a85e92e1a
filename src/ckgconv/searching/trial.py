"""One trial: a run in memory that is never tested, judged by its best validation epoch and pruned on the way.

    python -m ckgconv.searching.trial FOLDER TRIAL_ID --device cpu      in a process of its own

A trial fails where its training diverges or its settings do not fit the data; the sentence is kept with it.
"""

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError
from ckgconv.engine.callbacks import StopTraining
from ckgconv.engine.record import Epoch
from ckgconv.engine.run import Run, train
from ckgconv.recipe import Recipe
from ckgconv.recipes.molecules import fitting
from ckgconv.searching.space import applied
from ckgconv.searching.study import SearchFolder, open_search, quiet_optuna

FAILURE, EPOCHS, SECONDS = "failure", "epochs", "seconds"


class Pruning:
    """Reports every validation to Optuna, and stops a trial that the median of the others leaves behind."""

    def __init__(self, trial: Any) -> None:
        self.trial = trial
        self.pruned = False

    def on_epoch(self, run: Run, epoch: Epoch) -> None:
        if math.isnan(epoch.val):
            return
        self.trial.report(epoch.val, epoch.epoch)
        if epoch.epoch < run.recipe.training.epochs - 1 and self.trial.should_prune():
            self.pruned = True
            raise StopTraining


@dataclass(frozen=True)
class TrialSettings:
    """Where trials run."""

    device: str = "auto"
    data_dir: Path | None = None


def trial_recipe(search: SearchFolder, values: dict[str, Any]) -> Recipe:
    """The recipe with a trial's values: from scratch where they change the pretrained network.

    The warm-up is shortened where the trial has drawn few epochs; epochs that were given leave it as it is.
    """
    recipe = fitting(applied(search.recipe, values))
    training = recipe.training
    if "training.epochs" not in values:
        return recipe
    return replace(recipe, training=replace(training, warmup_epochs=min(training.warmup_epochs, training.epochs // 2)))


def run_trial(search: SearchFolder, study: Any, trial: Any, settings: TrialSettings) -> None:
    """Train a trial that Optuna has asked for, and tell it the outcome."""
    states, pruning = quiet_optuna().trial.TrialState, Pruning(trial)
    try:
        run = train(
            trial_recipe(search, trial.params),
            search.seed,
            data=settings.data_dir,
            device=settings.device,
            precision=search.precision,
            callbacks=[pruning],
            test=False,
        )
    except (InputError, MemoryError) as error:
        trial.set_user_attr(FAILURE, str(error) or type(error).__name__)
        study.tell(trial, state=states.FAIL)
        return
    trial.set_user_attr(EPOCHS, len(run.record.epochs))
    trial.set_user_attr(SECONDS, run.record.wall_s)
    best = run.record.best
    if pruning.pruned:
        study.tell(trial, state=states.PRUNED)
    elif best is None or math.isnan(best.val):
        trial.set_user_attr(FAILURE, "No epoch has a validation metric.")
        study.tell(trial, state=states.FAIL)
    else:
        study.tell(trial, best.val)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("trial", type=int)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--data-dir", type=Path)
    options = parser.parse_args()
    search = open_search(options.folder)
    study = search.study()
    trial = quiet_optuna().trial.Trial(study, options.trial)
    run_trial(search, study, trial, TrialSettings(options.device, options.data_dir))


if __name__ == "__main__":
    main()
