"""What a worker computes: the values of `Predictor`, as JSON can represent them; covers `ckgconv.serve.table`."""

import json

import pytest

from ckgconv.checks import InputError
from ckgconv.data.tables import read_table
from ckgconv.serve.network import Network
from ckgconv.serve.table import read_upload, written
from ckgconv.serve.worker import open_network
from ckgconv.uncertainty.predictor import Predictor


def test_several_runs_are_an_ensemble(runs):
    network = Network(runs, "cpu", 30)
    found = network.predict(["CCO", "nonsense"])
    expected = Predictor.open(*runs, device="cpu").predict("CCO")
    assert found[0]["predictions"][0]["value"] == pytest.approx(expected.values[0], rel=1e-6)
    assert found[0]["predictions"][0]["deviation"] == pytest.approx(expected.deviation[0], rel=1e-4)
    about = network.about()
    assert [each["seed"] for each in about["members"]] == [0, 1]
    assert "length_deviation" in about["columns"]
    json.dumps([found, about], allow_nan=False)


def test_a_network_of_the_package(runs):
    about = Network(["zinc"], "cpu", 250).about()
    assert (about["targets"], about["columns"]) == (["prediction"], ["prediction", "reason"])
    assert about["atoms"] == 250


def test_a_run_keeps_its_own_smaller_limit(runs):
    network = Network(runs[:1], "cpu", 2_000)
    assert network.about()["atoms"] == 1_000
    assert network.predict(["C" * 1_001])[0]["reason"].endswith("more than the 1,000 allowed (data.most_atoms).")


def test_what_cannot_be_served_is_refused(runs, tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        Network([str(tmp_path / "nowhere")], "cpu", 30)
    with pytest.raises(InputError, match="was given twice"):
        Network([runs[0], runs[0]], "cpu", 30)


def test_a_worker_answers_about_all_of_it(runs):
    answers = open_network(tuple(runs[:1]), "cpu", 30, threads=1)
    assert answers["predict"](smiles=["C"])[0]["smiles"] == "C"
    assert answers["cells"](smiles=["C"])[0]["reason"] == ""


def test_numbers_that_are_none_have_a_reason(network, monkeypatch):
    found = network.predictor.predict(["CCO"])
    found.values[:] = float("nan")
    monkeypatch.setattr(network.predictor, "predict", lambda smiles, features=None: found)
    assert network.predict(["CCO"])[0]["reason"] == "The prediction of the network is not a finite number."


def test_columns_of_the_file_that_have_the_name_of_a_prediction_are_replaced(tmp_path):
    table = read_upload(b"smiles,reason,a\nC,old,1\nN,old,=2\n", 10)
    portions = iter([[{"reason": "new", "x": 1.5}], [{"x": True}]])
    text = "".join(written(table, ["x", "reason"], portions))
    assert text.splitlines() == ["smiles,a,x,reason", "C,1,1.5,new", "N,'=2,True,"]
    (tmp_path / "out.csv").write_text(text)
    assert read_table(tmp_path / "out.csv").column("x") == ["1.5", "True"]
