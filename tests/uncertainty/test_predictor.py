"""One or several networks as one predictor; covers `ckgconv.uncertainty.predicted` and `ckgconv.engine.members`."""

import json

import numpy as np
import pytest

from ckgconv import InputError, Predictor, open_run, open_runs, predict_smiles, recipe, train
from ckgconv.engine.members import member_folder, member_folders, write_members
from ckgconv.recipes import with_value

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=6", "training.epochs=1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """An ensemble of two tiny networks."""
    folder = tmp_path_factory.mktemp("runs") / "both"
    chosen = recipe("zinc")
    for setting in SMALL:
        chosen = with_value(chosen, setting)
    for seed in range(2):
        train(chosen, seed, folder=member_folder(folder, seed), device="cpu")
    write_members(folder, 2)
    return folder


def test_one_molecule_and_several():
    predictor = Predictor.open("zinc", device="cpu")
    several = predictor.predict(["CCO", "C1CC", "c1ccccc1", "[U]"])
    one = predictor.predict("CCO")
    assert one.names == ("prediction",)
    assert one.values == pytest.approx(several[0].values)
    assert (one.reason, one.deviation, one.lower, one.similarity, one.inside) == ("", None, None, None, None)
    assert several[1].values is None
    assert "not a valid SMILES" in several[1].reason
    assert [bool(row.reason) for row in several] == [False, True, False, True]
    assert several[-1].reason == several.reasons[3]
    assert [row.smiles for row in several[1:3]] == ["C1CC", "c1ccccc1"]
    with pytest.raises(IndexError, match="There is no row 4: there are 4"):
        several[4]
    columns = several.columns()
    assert list(columns) == ["prediction", "reason"]
    assert columns["prediction"][1] is None
    assert predictor.predict([]).values.shape == (0, 1)


def test_rows_are_those_of_the_run_alone():
    run = open_run("zinc", device="cpu")
    found = predict_smiles(run, ["CCO", "nonsense"])
    assert found.values[0] == pytest.approx(list(Predictor([run]).predict("CCO").values))
    assert predict_smiles(run, "CCO").values == [pytest.approx(found.values[0])]
    assert len(found.embeddings[0]) == run.recipe.model.width
    assert (found.values[1], found.embeddings[1]) == (None, None)


def test_members_in_one_folder_predict_together(folder):
    predictor = Predictor.open(folder, device="cpu")
    counts = []
    found = predictor.predict(["CCO", "nonsense", "CCN"], counts.append)
    assert sum(counts) == 3
    alone = [Predictor.open(path, device="cpu").predict("CCO").values[0] for path in member_folders(folder)]
    assert found[0].values[0] == pytest.approx(np.mean(alone))
    assert found[0].deviation[0] == pytest.approx(np.std(alone, ddof=1))
    assert found[1].deviation is None
    assert open_runs([folder], device="cpu").predict("CCO").mean[0, 0] == pytest.approx(np.mean(alone))
    with pytest.raises(InputError, match=r"is an ensemble: open it with open_runs .*, such as .*member0.$"):
        open_run(folder)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "it is not JSON"),
        (json.dumps({"format": 2, "members": ["a", "b"]}), "it has format 2"),
        (json.dumps({"members": ["member0"]}), "fewer than two members"),
        (json.dumps({"members": ["../a", "b"]}), "its member '../a' is no folder in it"),
        (json.dumps({"members": 3}), "members is 3, not a list of a text"),
    ],
)
def test_a_damaged_list_of_members_is_a_sentence(tmp_path, text, sentence):
    (tmp_path / "ensemble.json").write_text(text)
    with pytest.raises(InputError, match="train the ensemble again") as caught:
        member_folders(tmp_path)
    assert sentence in str(caught.value)


def test_wrong_runs_are_refused(folder):
    for folders, sentence in (
        ([], "No run was given"),
        (["nowhere"], "nowhere is not a folder"),
        ([folder, folder / "member0"], "given twice"),
    ):
        with pytest.raises(InputError, match=sentence):
            Predictor.open(*folders, device="cpu")
