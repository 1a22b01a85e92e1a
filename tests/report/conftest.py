"""Fixtures: untrained runs of small tables, with hostile names."""

from dataclasses import replace

import pytest
import torch
from known_runs import small_recipe

from ckgconv.data.molecule_table import load_table
from ckgconv.engine.record import Best, Epoch, new_record
from ckgconv.engine.run import Run, make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.recipe import DataRecipe

HOSTILE = "<script>alert(1)</script>$x^"


def run_of_table(folder, targets, labels=False, epochs=3):
    """A run on 40 molecules of a table with an invalid row and a repeated molecule."""
    lines = [f"smiles,{','.join(targets)}"]
    for count in range(40):
        value = str(count % 2) if labels else str(count / 7)
        text = "C" * (count % 13 + 1) + ("O", "N", "Cl", "c1ccccc1")[count % 4]
        lines.append(",".join([text, *[value] * len(targets)]))
    lines += [",".join(["<img src=x>", *["1"] * len(targets)]), ",".join(["CCCO", *["1"] * len(targets)])]
    path = folder / "table.csv"
    path.write_text("\n".join(lines) + "\n")
    recipe = small_recipe(targets, labels)
    recipe = replace(recipe, name="small", data=DataRecipe(str(path), targets=targets, split="random"))
    data = load_table(recipe.data)
    torch.manual_seed(0)
    learner = make_learner(make_fabric("cpu", "32"), build_model(recipe.model), data, recipe)
    record = new_record(recipe, 0, 1, torch.device("cpu"), "32")
    record.epochs = [Epoch(number, 1.0 / (number + 1), 0.5 / (number + 1), 0.001, 1.0) for number in range(epochs)]
    record.best = Best(epochs - 1, 0.1, 0.2) if epochs else None
    (folder / "run").mkdir()
    return Run(recipe, learner, record, folder / "run", {})


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Two targets, one of them hostile."""
    return run_of_table(tmp_path_factory.mktemp("values"), (HOSTILE, "b"))


@pytest.fixture(scope="module")
def labels_run(tmp_path_factory):
    return run_of_table(tmp_path_factory.mktemp("labels"), ("active",), labels=True)
