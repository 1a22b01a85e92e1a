"""Fixtures: a table of few molecules, a search of a tiny network on it, and that search once it has ended."""

from dataclasses import replace

import pytest
from molecules_for_tests import LENGTHS, SMILES

from ckgconv.recipe import DataRecipe
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting, molecules
from ckgconv.searching.search import SearchSettings, run_search
from ckgconv.searching.space import checked
from ckgconv.searching.study import SearchFolder
from ckgconv.searching.trial import TrialSettings

TINY = ("model.width=4", "model.blocks=1", "model.steps=2", "model.support=global", "training.epochs=2")
SPACE = {
    "model.width": {"choices": [4, 6]},
    "training.learning_rate": {"low": 1e-3, "high": 1e-2, "log": True},
    "model.support": {"choices": [2, "global"]},
}
CPU = TrialSettings("cpu")


@pytest.fixture(scope="session")
def recipe(tmp_path_factory):
    file = tmp_path_factory.mktemp("table") / "lengths.csv"
    rows = "\n".join(f"{smiles},{length}" for smiles, length in zip(SMILES, LENGTHS, strict=True))
    file.write_text(f"smiles,length\n{rows}\n")
    found = replace(molecules(DataRecipe(str(file), targets=("length",), split="random")), name="lengths")
    for setting in TINY:
        found = with_value(found, setting)
    return fitting(found)


@pytest.fixture
def search(recipe, tmp_path):
    return SearchFolder(tmp_path / "search", recipe, checked(SPACE, recipe), seed=0)


@pytest.fixture(scope="session")
def ended_search(recipe, tmp_path_factory):
    """A search of five trials, the lines it told, and the run of its best recipe."""
    found = SearchFolder(tmp_path_factory.mktemp("ended") / "search", recipe, checked(SPACE, recipe), seed=0)
    lines = []
    return found, lines, run_search(found, SearchSettings(5, where=CPU), lines.append)
