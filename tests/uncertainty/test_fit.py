"""What is fitted after training, and what a predictor says with it; covers `ckgconv.uncertainty.outputs`."""

from dataclasses import replace

import numpy as np
import pytest

from ckgconv import InputError, Predictor, recipe, train
from ckgconv.cli.table_options import TableOptions, table_recipe
from ckgconv.recipe import DataRecipe
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting, molecules
from ckgconv.uncertainty import Uncertainty, fit, read_uncertainty, write_uncertainty
from ckgconv.uncertainty.fit import split_outcomes
from ckgconv.uncertainty.judge import judge

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=2", "training.warmup_epochs=0"]


def trained(folder, rows, classification, seed=0):
    """A tiny network of a table with the columns smiles and y."""
    path = folder / "table.csv"
    path.write_text("\n".join(["smiles,y", *(f"{smiles},{y}" for smiles, y in rows)]) + "\n")
    data = DataRecipe(str(path), targets=("y",), split="random")
    chosen = replace(molecules(data, classification), name="table")
    for setting in SMALL:
        chosen = with_value(chosen, setting)
    return train(fitting(chosen), seed, device="cpu")


def chains(count):
    """Chains with one other atom."""
    return ["C" * (place // 10 + 1) + "NOSPB"[place % 5] + "C" * (place % 10) for place in range(count)]


@pytest.fixture(scope="module")
def regression(tmp_path_factory):
    rows = [(smiles, len(smiles)) for smiles in chains(120)] + [("nonsense", 3)]
    folder = tmp_path_factory.mktemp("regression")
    return [trained(folder, rows, False, seed) for seed in range(2)]


def test_intervals_and_domain_of_a_regression(regression):
    found = fit(regression[:1])
    assert (found.members, found.outputs, found.calibrations) == (1, ("y",), ())
    assert len(found.scores[0].ascending) == 12  # a tenth of the rows
    outcomes = split_outcomes(regression[:1], "val")
    assert found.scores[0].ascending[-1] == pytest.approx(np.abs(outcomes.values - outcomes.target).max())
    assert len(found.applicability.smiles) == 96
    predictor = Predictor(regression[:1], found, level=0.9)
    inside, broken = predictor.predict([found.applicability.smiles[0], "C1CC"])
    assert inside.lower[0] < inside.values[0] < inside.upper[0]
    assert (inside.similarity, inside.inside) == (1.0, True)
    assert (broken.lower, broken.similarity, broken.outside) == (None, None, None)
    assert predictor.predict("[U]").outside
    columns = predictor.predict(["CCO", "C1CC"]).columns()
    assert list(columns) == ["y_predicted", "y_lower", "y_upper", "similarity", "nearest", "outside", "reason"]
    assert [cells[1] for name, cells in columns.items() if name != "reason"] == [None] * 6


def test_a_level_that_needs_more_rows_is_said(regression):
    predictor = Predictor(regression[:1], fit(regression[:1]), level=0.95)
    assert predictor.notes == ("No interval of y at level 0.95: 12 validation rows allow 0.923 at most.",)
    assert np.isnan(predictor.predict("CCO").lower[0])
    assert predictor.predict(["CCO"]).columns()["y_lower"] == [None]


def test_members_have_intervals_of_their_own(regression):
    found = fit(regression)
    assert found.scores[0].floor > 0
    both = Predictor(regression, found).predict(["CCO", "CCCCCCCCCCCCN"])
    half = (both.upper - both.lower)[:, 0] / 2
    assert half == pytest.approx(found.scores[0].quantile(0.9) * (both.deviation[:, 0] + found.scores[0].floor))
    with pytest.raises(InputError, match="is for 2 members and the outputs y, not for 1 and y: fit it again"):
        Predictor(regression[:1], found)


def test_labels_are_calibrated(tmp_path):
    rows = [(smiles, int("N" in smiles or "O" in smiles)) for smiles in chains(400)]
    run = trained(tmp_path, rows, True)
    found = fit([run])
    assert found.scores == ()
    assert found.notes == ()
    molecule = Predictor([run], found).predict("CCO")
    assert 0 < molecule.calibrated[0] < 1
    assert molecule.lower is None
    few = Uncertainty(1, ("y",), calibrations=(None,), notes=("y: too few",))
    assert Predictor([run], few).predict("CCO").calibrated is None
    assert Predictor([run], few).notes == ("Not calibrated: y: too few.",)


def test_data_without_smiles_has_no_domain():
    chosen = recipe("zinc")
    for setting in [*SMALL, "data.limit=6"]:
        chosen = with_value(chosen, setting)
    found = fit([train(chosen, device="cpu")])
    assert found.applicability is None
    assert found.outputs == ("prediction",)


def test_targets_of_several_kinds_have_intervals_and_calibrations(tmp_path):
    path = tmp_path / "table.csv"
    atoms = {"N": "1,a", "O": "1,b", "S": "0,b"}
    rows = [f"{each},{len(each) - 30},{atoms.get(each.strip('C'), '0,c')}" for each in chains(400)]
    path.write_text("\n".join(["smiles,y,amine,kind", *rows]) + "\n")
    chosen = table_recipe(path, TableOptions(target=["y", "amine", "kind"]))
    for setting in [*SMALL, "training.epochs=6"]:
        chosen = with_value(chosen, setting)
    run = train(fitting(chosen), device="cpu")
    found = fit([run])
    assert [each is not None for each in found.scores] == [True, False, False, False, False]
    assert [each is not None for each in found.calibrations] == [False, True, True, True, True]
    assert found.calibrations[2] == found.calibrations[3] == found.calibrations[4]
    assert found.notes == ()
    write_uncertainty(tmp_path, found)
    found = read_uncertainty(tmp_path)
    predictor = Predictor([run], found)
    columns = predictor.predict(["CCO", "C1CC"]).columns()
    bounds = [name for name in columns if name.endswith(("_lower", "_upper", "_calibrated"))]
    assert bounds == ["y_lower", "y_upper", *(f"{name}_calibrated" for name in ("amine", "kind_a", "kind_b", "kind_c"))]
    molecule = predictor.predict("CCO")
    assert molecule.lower[0] < molecule.values[0] < molecule.upper[0]
    assert sum(molecule.calibrated[2:]) == pytest.approx(1)
    judged = judge([run], found)
    assert list(judged.coverage) == ["y"]
    assert judged.coverage["y"].rows == 40
    assert list(judged.calibration) == ["amine", "kind"]
    few = fit([replace(run, learner=replace(run.learner, data=run.learner.data.limited(10)))])
    assert few.notes[0].startswith("amine: 10 validation rows")
    assert few.notes[1].startswith("kind: 10 validation rows")
