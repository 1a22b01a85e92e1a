"""The addresses: what they answer, and what they refuse with a sentence."""

import csv
import json
from http.client import HTTPConnection

import pytest

from ckgconv.engine.predict_molecules import predict_smiles
from ckgconv.serve.pool import Busy
from ckgconv.serve.static import FILES
from ckgconv.serve.worker import TooSlow


def predict(client, smiles):
    return client.post("/api/predict", json={"smiles": smiles})


def test_molecules_have_predictions_or_reasons(client, network):
    response = predict(client, ["CCO", "C1CC", "", "CCCl"])
    assert response.status_code == 200
    found = response.json()["molecules"]
    expected = predict_smiles(network.predictor.run, ["CCO", "CCCl"]).values
    assert [row["smiles"] for row in found] == ["CCO", "C1CC", "", "CCCl"]
    for row, value in ((found[0], expected[0]), (found[3], expected[1])):
        assert row["reason"] == ""
        assert row["predictions"][0]["target"] == "length"
        assert row["predictions"][0]["value"] == pytest.approx(value[0], rel=1e-5)
    assert [row["predictions"] for row in found[1:3]] == [[], []]
    assert found[1]["reason"] == "'C1CC' is not a valid SMILES."
    assert found[2]["reason"] == "The SMILES is empty."


def test_many_molecules_keep_their_order(client):
    smiles = ["C" * (place % 5 + 1) for place in range(40)]
    found = predict(client, smiles).json()["molecules"]
    assert [row["smiles"] for row in found] == smiles


def test_a_molecule_beyond_a_limit_has_a_reason(client):
    found = predict(client, ["C" * 31, "C" * 201]).json()["molecules"]
    assert found[0]["reason"].endswith("31 atoms, more than the 30 that this server allows (--atoms).")
    assert found[1]["reason"] == "The SMILES has 201 letters: give at most 200."
    assert len(found[1]["smiles"]) == 200


def test_the_network_is_described_without_paths(client, runs):
    found = client.get("/api/model").json()
    assert (found["targets"], found["metric"], found["kind"]) == (["length"], "mae", "values")
    assert found["data"] == {
        "name": "chains.csv",
        "smiles_column": "smiles",
        "molecules": 30,
        "train": 24,
        "validation": 3,
        "test": 3,
    }
    assert found["members"][0]["run"] == "seed0"
    assert found["limits"]["rows"] == 100
    assert runs[0] not in client.get("/api/model").text
    assert client.get("/api/health").json() == {"status": "ok"}


def test_a_prediction_is_explained_with_a_drawing(client):
    value = predict(client, ["CCO"]).json()["molecules"][0]["predictions"][0]["value"]
    for asked in ({"smiles": "CCO"}, {"smiles": "CCO", "target": "length"}):
        found = client.post("/api/explain", json=asked).json()
        assert (found["target"], found["unit"]) == ("length", "length")
        assert found["prediction"] == pytest.approx(value, rel=1e-4)
        assert len(found["atoms"]) == 3
        assert [bond["atoms"] for bond in found["bonds"]] == [[0, 1], [1, 2]]
        total = sum(found["atoms"]) + sum(bond["contribution"] for bond in found["bonds"]) + found["residual"]
        assert total == pytest.approx(found["prediction"] - found["baseline"], abs=1e-4)
        assert found["svg"].startswith("<svg")


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"smiles": "nonsense"}, "'nonsense' is not a valid SMILES."),
        ({"smiles": "C" * 31}, "that this server allows (--atoms)."),
        ({"smiles": "C" * 201}, "The SMILES has 201 letters: give at most 200."),
        ({"smiles": "C", "target": "x"}, "There is no such target: choose one of length."),
        ({"smiles": ["C"]}, "The field smiles cannot be used"),
    ],
)
def test_what_cannot_be_explained_is_a_sentence(client, asked, sentence):
    response = client.post("/api/explain", json=asked)
    assert response.status_code == 422
    assert sentence in response.json()["error"]


def test_a_slow_explanation_and_a_busy_server_are_sentences(client, pool, monkeypatch):
    for error, status in ((TooSlow, 422), (Busy, 503)):

        def fails(*arguments, error=error, **named):
            raise error

        monkeypatch.setattr(pool, "ask", fails)
        response = client.post("/api/explain", json={"smiles": "C"})
        assert (response.status_code, response.json()["error"][-1]) == (status, ".")
    file = upload(client, "smiles\nCCO\n")  # ends early, and says how many rows there should have been
    assert (file.headers["x-rows"], len(file.text.splitlines())) == ("1", 1)


def upload(client, text, column=""):
    content = text if isinstance(text, bytes) else text.encode()
    return client.post("/api/predict-file", files={"file": ("../../x.csv", content)}, data={"column": column})


def test_a_table_comes_back_with_predictions(client):
    response = upload(client, "id,smiles\n=1+1,CCO\n2,nonsense\n3,CCN\n")
    assert response.status_code == 200
    assert response.headers["x-rows"] == "3"
    assert response.headers["content-type"].startswith("text/csv")
    rows = list(csv.DictReader(response.text.splitlines()))
    assert list(rows[0]) == ["id", "smiles", "length_predicted", "reason"]
    assert [row["id"] for row in rows] == ["'=1+1", "2", "3"]
    assert float(rows[0]["length_predicted"])
    assert (rows[1]["length_predicted"], rows[1]["reason"]) == ("", "'nonsense' is not a valid SMILES.")
    longer = upload(client, "id,smiles\n1,CCO,5\n2,CCN\n")
    kept, next_row = csv.DictReader(longer.text.splitlines())
    assert (kept["smiles"], kept["length_predicted"]) == ("CCO", "")
    assert kept["reason"] == "The row has more cells than the header: quote cells that contain the separator."
    assert float(next_row["length_predicted"])
    named = upload(client, "smiles,other\nnonsense,CCO\n", "other")
    assert next(csv.DictReader(named.text.splitlines()))["reason"] == ""


@pytest.mark.parametrize(
    ("text", "column", "sentence"),
    [
        ("", "", "The file is empty: give a CSV"),
        ("smiles\n", "", "The file has a header but no rows"),
        ("a;b\n1;2\n", "", "The file has no column 'smiles': its columns are a, b."),
        ("name\nCCO\n", "", "The file has no column 'smiles': its columns are name."),
        ("smiles\nCCO\n", "<b>", "The file has no column '<b>'"),
        (b"smiles\n\xff\xfe\n", "", "The file cannot be read as a CSV"),
        ("smiles\n" + "C\n" * 101, "", "The file has 101 rows: send at most 100 at once."),
        ('smiles\n"CC\n', "", "close"),
    ],
)
def test_a_wrong_table_is_refused(client, text, column, sentence):
    response = upload(client, text, column)
    assert response.status_code == 422
    assert sentence in response.json()["error"]
    assert "/tmp" not in response.text


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"", "The body cannot be used"),
        (b"{", "The body is not JSON: see /api/docs."),
        # Not JSON, or too deep to read: that depends on the recursion limit, which libraries raise.
        (b"[" * 5000, "see /api/docs."),
        (b"\xff", "cannot be read"),
        (b"[]", "The body cannot be used"),
        (b"{}", "The field smiles cannot be used (field required): see /api/docs."),
        (b'{"smiles": []}', "The field smiles cannot be used"),
        (b'{"smiles": "CCO"}', "The field smiles cannot be used"),
        (b'{"smiles": [NaN]}', "The field smiles.0 cannot be used"),
        (b'{"smiles": [1e999]}', "The field smiles.0 cannot be used"),
        (b'{"smiles": ["C"], "run": "/etc"}', "The field run cannot be used"),
        (b'{"smiles": [' + b'"C",' * 40 + b'"C"]}', "The request has 41 molecules: send at most 40, or a CSV."),
    ],
)
def test_a_wrong_request_is_a_sentence(client, body, sentence):
    response = client.post("/api/predict", content=body, headers={"content-type": "application/json"})
    assert response.status_code in (400, 422)
    assert list(response.json()) == ["error"]
    assert sentence in response.json()["error"]


def test_markup_and_control_characters_are_text(client):
    texts = ["<script>alert(1)</script>", "C\x00C", "'\"><img src=x>", "=cmd|' /C calc'!A0"]
    response = predict(client, texts)
    assert response.headers["content-type"] == "application/json"
    assert all(row["reason"] for row in response.json()["molecules"])
    half = client.post(
        "/api/predict", content=b'{"smiles": ["C\\ud83d"]}', headers={"content-type": "application/json"}
    )
    assert half.status_code == 422


@pytest.mark.parametrize(
    "asked",
    [
        "/../../etc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../app.py",
        "//etc/passwd",
        "/index.html",
        "/openchemlib/LICENSE",
        "/api/model/",
        "/docs",
        "/redoc",
        "/api/predict/x",
        "/page.js%00.css",
    ],
)
def test_only_known_addresses_are_answered(address, asked):
    connection = HTTPConnection(address.removeprefix("http://"))  # which sends dots as they are
    connection.request("GET", asked)
    response = connection.getresponse()
    assert response.status == 404
    assert json.load(response) == {"error": "There is nothing at this address: see /api/docs."}
    connection.close()


def test_other_methods_are_refused(client):
    for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        response = client.request(method, "/api/predict")
        assert response.status_code == 405
        assert "see /api/docs" in response.json()["error"]


def test_files_of_the_page_need_no_other_host(client):
    for address in FILES:
        response = client.get(address)
        assert response.status_code == 200
        again = client.get(address, headers={"if-none-match": response.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        if address in ("/", "/page.js", "/page.css", "/editor.js", "/docs.js", "/api/docs"):
            assert "http://" not in response.text
            assert "https://" not in response.text
            assert "innerHTML" not in response.text


def test_the_interface_is_described_with_examples(client):
    whole = client.get("/api/openapi.json").json()
    assert set(whole["paths"]) == {
        *("/api/predict", "/api/predict-file", "/api/explain", "/api/model", "/api/health"),
    }
    asked = whole["components"]["schemas"]["PredictRequest"]["properties"]["smiles"]
    assert asked["examples"] == [["CCO", "c1ccccc1"]]
    body = whole["paths"]["/api/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["$ref"].endswith("PredictRequest")


def test_a_failure_of_our_own_has_no_traceback(client, pool, monkeypatch):
    def fails(*arguments, **named):
        raise ZeroDivisionError("secret")

    monkeypatch.setattr(pool, "ask", fails)
    response = predict(client, ["CCO"])
    assert response.status_code == 500
    assert response.json()["error"].startswith("The server failed")
    assert "secret" not in response.text
