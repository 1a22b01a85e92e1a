"""The page in a real browser: type, draw, upload, download, explain; nothing is blocked and nothing fails."""

import csv
import time

import pytest
import webdriver


@pytest.fixture(scope="module")
def window(address, tmp_path_factory):
    folder = tmp_path_factory.mktemp("downloads")
    with webdriver.window(folder) as opened:
        opened.downloads = folder
        opened.open(address)
        opened.wait(lambda: opened.run("return document.documentElement.dataset.ready"))
        yield opened


@pytest.fixture(autouse=True)
def _without_complaints(window):
    """Nothing is written to the console: no error, and nothing that the policy of the page blocks."""
    yield
    assert window.messages() == []


def rows(window):
    return window.run("return [...document.querySelectorAll('#rows tbody tr')].map((row) => row.innerText)")


def downloaded(window):
    file = window.downloads / "predictions.csv"
    window.wait(lambda: file.exists() and file.stat().st_size)
    time.sleep(0.1)
    text = file.read_text()
    file.unlink()
    return list(csv.DictReader(text.splitlines()))


def test_the_page_says_what_is_served(window):
    assert window.run("return document.title") == "molecules · ckgconv"
    assert window.text("#summary") == "Predicts length."
    assert "chains.csv, 24 molecules" in window.text("#facts")
    labelled = "return [...document.querySelectorAll('input, textarea, select')].every((each) => each.labels.length)"
    assert window.run(labelled)


def test_molecules_are_typed_predicted_explained_and_downloaded(window):
    window.type("#smiles", "CCO\n<img src=x onerror=alert(1)>\nCCCN")
    window.click("#predict")
    found = window.wait(lambda: rows(window))
    value = window.text("#rows tbody tr:first-child td.value b")
    assert float(value)
    assert "is not a valid SMILES" in found[1]
    assert window.text("#status") == "2 of 3 molecules predicted."
    assert not window.run("return document.querySelector('#rows img[src=x]')")
    pictures = "return [...document.querySelectorAll('#rows img')].map((each) => each.complete && each.naturalWidth)"
    assert window.wait(lambda: all(window.run(pictures)))
    window.click("#save")
    saved = downloaded(window)
    assert [row["smiles"] for row in saved] == ["CCO", "<img src=x onerror=alert(1)>", "CCCN"]
    assert float(saved[0]["length_predicted"]) == pytest.approx(float(value), abs=1e-3)
    window.click("#rows tbody tr:first-child button")
    width = "return document.querySelector('#picture').complete && document.querySelector('#picture').naturalWidth"
    assert window.wait(lambda: window.run(width)) > 100
    assert window.text("#explained").startswith(f"length of CCO: {value}")


def test_a_molecule_is_drawn_and_taken_over(window):
    window.click("#clear")
    window.click("#draw")
    assert window.run("return document.querySelector('#draw').getAttribute('aria-expanded')") == "true"
    window.run("document.querySelector('#editor').scrollIntoView()")
    window.press("#editor", (13, 145), (300, 200))  # the ring of six at the left, then the canvas
    window.wait(lambda: window.text("#drawn") not in ("", "nothing drawn yet"))
    drawn = window.text("#drawn")
    window.click("#take")
    assert window.run("return document.querySelector('#smiles').value") == f"{drawn}\n"
    before = rows(window)
    window.click("#predict")
    window.wait(lambda: rows(window) != before)
    assert drawn in rows(window)[0]
    assert float(window.text("#rows tbody tr:first-child td.value b"))
    window.wait(lambda: window.text("#explained").startswith(f"length of {drawn}"))  # one molecule is explained at once
    window.click("#draw")


def test_a_table_is_uploaded_and_comes_back(window, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("id,structure\n" + "".join(f"{place},{'C' * (place % 6 + 1)}O\n" for place in range(80)))
    window.type("#file", str(table))
    window.click("#predict-file")
    window.wait(lambda: "has no column 'smiles'" in window.text("#table-status"))
    assert [message for message in window.messages() if "422" in message]  # the browser's own note of the status
    window.type("#column", "structure")
    window.click("#predict-file")
    window.wait(lambda: window.text("#table-status") == "80 rows are ready.")
    window.click("#download")
    found = downloaded(window)
    assert [row["id"] for row in found] == [str(place) for place in range(80)]
    assert all(float(row["length_predicted"]) for row in found)


def test_the_keyboard_is_enough(window):
    window.click("#clear")
    window.type("#smiles", "CCCCF\ue009\ue007")  # Ctrl and Enter
    window.wait(lambda: "CCCCF" in "".join(rows(window)))


def test_no_part_is_wider_than_a_small_window(window):
    window.devtools("Emulation.setDeviceMetricsOverride", width=360, height=700, deviceScaleFactor=1, mobile=False)
    window.emulate(prefers_color_scheme="dark")
    assert window.run("return document.documentElement.scrollWidth") <= 360
    assert window.run("return getComputedStyle(document.body).backgroundColor") == "rgb(18, 21, 28)"
    window.devtools("Emulation.clearDeviceMetricsOverride")
    window.emulate()


def test_the_interface_has_a_page(window, address):
    window.open(f"{address}/api/docs")
    window.wait(lambda: window.run("return document.querySelectorAll('.operation').length") == 5)
    assert "/api/predict-file" in window.text("#operations")
