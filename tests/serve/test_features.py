"""Values of own columns: in requests, in a table, and in fields of the page."""

import csv

import httpx
import pytest
import webdriver

from ckgconv import InputError
from ckgconv.serve.features import values_of

VALUES = {"pH": 7.4, "dose mg": None}


@pytest.fixture
def client(own_columns_address):
    with httpx.Client(base_url=own_columns_address, timeout=60) as client:
        yield client


def values(client, features):
    answer = client.post("/api/predict", json={"smiles": ["CCO", "CCCO"], "features": features})
    assert answer.status_code == 200, answer.text
    return [row["predictions"][0]["value"] for row in answer.json()["molecules"]]


def test_predictions_depend_on_the_columns(client):
    model = client.get("/api/model").json()
    assert (model["features"], model["kind"]) == (["pH", "dose mg"], "mixed")
    both = values(client, [VALUES, {"pH": 1, "dose mg": 50}])
    assert values(client, [VALUES])[0] == pytest.approx(both[0], abs=1e-5)
    assert values(client, [VALUES])[1] != pytest.approx(both[1], abs=1e-5)
    row = client.post("/api/predict", json={"smiles": ["CCO"], "features": [VALUES]}).json()["molecules"][0]
    value, label = row["predictions"]
    assert value["lower"] < value["value"] < value["upper"]
    assert label["lower"] is None


def test_explanations_have_a_term_for_each_column(client):
    found = client.post("/api/explain", json={"smiles": "CCO", "features": VALUES}).json()
    assert set(found["features"]) == {"pH", "dose mg"}
    assert found["features"]["dose mg"] == pytest.approx(0, abs=1e-6)


def test_a_table_has_them_as_columns(client):
    text = "Smiles;dose mg;pH\nCCO;;7,4\nCCCO;50;1,0\nCC;1;acid\nC;1e400;7,1\n"
    answer = client.post("/api/predict-file", files={"file": ("t.csv", text)})
    rows = list(csv.DictReader(answer.text.splitlines()))
    found = [float(row["length_predicted"]) for row in rows[:2]]
    assert found == pytest.approx(values(client, [VALUES, {"pH": 1.0, "dose mg": 50.0}]), abs=1e-4)
    assert rows[2]["reason"] == "'acid' in column 'pH' is no number, and the network reads it."
    assert rows[3]["reason"] == "'1e400' in column 'dose mg' is larger than 1e+18, and the network reads it."
    assert (rows[2]["length_predicted"], rows[0]["reason"]) == ("", "")
    answer = client.post("/api/predict-file", files={"file": ("t.csv", "smiles,pH\nCCO,7\n")})
    assert answer.status_code == 422
    assert answer.json()["error"] == "The file has no column 'dose mg': its columns are smiles, pH."


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (
            {"smiles": ["CCO"]},
            'reads pH, dose mg beside each molecule: give the field features, [{"pH": 1.5, "dose mg"',
        ),
        ({"smiles": ["CCO"], "features": [{"pH": 7}]}, "names other columns than pH, dose mg"),
        ({"smiles": ["CCO"], "features": [{"pH": 7, "dose mg": 1, "x": 1}]}, "names other columns than"),
        ({"smiles": ["CCO"], "features": [VALUES] * 2}, "has 2 groups for 1 molecules"),
        ({"smiles": ["CCO"], "features": [{"pH": "7", "dose mg": 1}]}, "features.0.pH cannot be used"),
        ({"smiles": ["CCO"], "features": [{"pH": True, "dose mg": 1}]}, "features.0.pH cannot be used"),
    ],
)
def test_wrong_values_are_a_sentence(client, body, sentence):
    answer = client.post("/api/predict", json=body)
    assert answer.status_code == 422
    assert sentence in answer.json()["error"]


def test_a_network_of_molecules_alone_takes_none():
    assert values_of(None, [], 3) is None
    with pytest.raises(InputError, match="reads molecules alone"):
        values_of([{"pH": 1.0}], [], 1)


def test_the_page_has_a_field_for_each(own_columns_address, client, tmp_path):
    with webdriver.window(tmp_path) as window:
        window.open(own_columns_address)
        window.wait(lambda: window.run("return document.documentElement.dataset.ready"))
        assert window.run("return [...document.querySelectorAll('#features label')].map((each) => each.innerText)") == [
            "pH, of all molecules above",
            "dose mg, of all molecules above",
        ]
        window.type("#smiles", "CCO")
        window.type("#feature0", "acid")
        window.click("#predict")
        window.wait(lambda: "pH is no number" in window.text("#status"))
        window.run("document.querySelector('#feature0').value = '7,4'")
        window.click("#predict")
        window.wait(lambda: "dose mg adds 0.000." in window.text("#method"))
        shown = window.text("#rows tbody tr:first-child td.value b")
        assert float(shown) == pytest.approx(values(client, [VALUES])[0], abs=6e-4)
        window.click("#save")
        file = tmp_path / "predictions.csv"
        window.wait(lambda: file.exists() and file.stat().st_size)
        (row,) = csv.DictReader(file.read_text().splitlines())
        assert (row["pH"], row["dose mg"], row["reason"]) == ("7.4", "", "")
        assert window.messages() == []
