"""The folder of a search, and the study of Optuna in it.

search.json    the recipe, the space, the seed: what the search is
study.db       all trials, in SQLite; a process that is killed loses at most the trials in progress
best.json      the recipe of the best trial, which `ckgconv train` takes
best/          its run, trained and tested once all trials have ended
README.md, search.png    the page
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, with_config

from ckgconv.checks import InputError, require
from ckgconv.engine.record import read_record
from ckgconv.files import read_text, valid_json, write_text
from ckgconv.recipe import Recipe
from ckgconv.recipe.format import FORMAT, MOST_SETTINGS, group_of
from ckgconv.recipe.limits import LARGEST_SEED
from ckgconv.recipe.values import KEPT, read
from ckgconv.recipes import from_json, to_json
from ckgconv.searching.space import Space, checked
from ckgconv.tasks.metrics import METRICS

FILE, STUDY, BEST, RUN = "search.json", "study.db", "best.json", "best"
NAME = "search"
# Trials that draw at random before the sampler learns from them, and those that no trial is pruned before.
STARTUP = 8


@with_config(KEPT)
@dataclass(frozen=True)
class KeptSearch:
    """search.json."""

    recipe: dict[str, Any]
    space: dict[str, Any]
    seed: Annotated[int, Field(ge=0, le=LARGEST_SEED)]
    precision: Literal["32", "tf32", "bf16", "64"]


@dataclass(frozen=True)
class SearchFolder:
    """A search as its folder describes it."""

    path: Path
    recipe: Recipe
    space: Space
    seed: int
    precision: str = "32"

    @property
    def higher_is_better(self) -> bool:
        return METRICS[self.recipe.training.metric].higher_is_better

    @property
    def tested(self) -> bool:
        """Whether the best recipe has been trained and tested, which ends a search."""
        record = read_record(self.path / RUN)
        return record is not None and record.test is not None

    def adopt(self) -> None:
        """Write search.json; refused where the folder holds another search, or something else."""
        text = valid_json(self._values(), indent=1)
        file = self.path / FILE
        if file.exists():
            remedy = "restore it, or choose another folder with --out."
            try:
                kept = group_of(read_text(file, remedy, MOST_SETTINGS))
            except InputError as error:
                raise InputError(f"{file} does not describe a search ({error}): {remedy}") from error
            require(
                kept == group_of(text),
                f"{self.path} holds a search with another recipe, space, seed or precision: choose another folder with "
                f"--out.",
            )
            return
        others = [each.name for each in self.path.iterdir() if each.name != "lock"] if self.path.exists() else []
        require(not others, f"{self.path} already exists and holds no search: choose another folder with --out.")
        write_text(file, text)

    def study(self, seed: int = 0) -> Any:
        """The study of the folder, created where there is none."""
        optuna = quiet_optuna()
        storage = optuna.storages.RDBStorage(
            f"sqlite:///{self.path / STUDY}", engine_kwargs={"connect_args": {"timeout": 120}}
        )
        return optuna.create_study(
            storage=storage,
            study_name=NAME,
            direction="maximize" if self.higher_is_better else "minimize",
            load_if_exists=True,
            sampler=optuna.samplers.TPESampler(seed=seed, n_startup_trials=STARTUP, constant_liar=True),
            pruner=optuna.pruners.MedianPruner(n_startup_trials=STARTUP // 2, n_warmup_steps=warmup(self.recipe)),
        )

    def _values(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "recipe": json.loads(to_json(self.recipe)),
            "space": self.space.entries,
            "seed": self.seed,
            "precision": self.precision,
        }


def open_search(path: Path) -> SearchFolder:
    """The search in a folder."""
    file = path / FILE
    text = read_text(file, "give the folder of a search.", MOST_SETTINGS)
    try:
        kept = read(group_of(text), KeptSearch)
        recipe = from_json(json.dumps(kept.recipe), str(file))
        return SearchFolder(path, recipe, checked(kept.space, recipe), kept.seed, kept.precision)
    except InputError as error:
        raise InputError(f"{file} does not describe a search ({str(error).rstrip('.')}): restore it.") from error


def warmup(recipe: Recipe) -> int:
    """Epochs in which no trial is pruned: the warm-up of the learning rate, and a fifth of all."""
    return max(recipe.training.warmup_epochs, recipe.training.epochs // 5)


def quiet_optuna() -> Any:
    """Optuna, which prints nothing below a warning."""
    try:
        import optuna
    except ImportError as error:
        raise InputError("A search needs optuna: install it with pip install 'ckgconv[search]'.") from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna
