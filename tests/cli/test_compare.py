import json
from itertools import combinations
from pathlib import Path

from records import write_runs

from ckgconv import recipe

SMALL = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=6", "training.epochs=2"]


def test_two_recipes_on_the_screen_as_json_and_as_a_page(ckgconv):
    train = ["--seed", "0", "1", "--set", *SMALL, "--device", "cpu", "--json", "--out"]
    assert ckgconv("train", "zinc", *train, "one")[0] == 0
    assert ckgconv("train", "zinc-grit", *train, "two")[0] == 0
    runs = ["one/seed0", "one/seed1", "two/seed0", "two/seed1/record.json"]
    code, out, err = ckgconv("compare", *runs, "--out", "page")
    assert code == 0, err
    assert "zinc-grit" in out
    assert "told apart" in out
    assert f"Runs under {Path.cwd()}" in out
    assert "│ one/seed0 " in out
    assert sorted(path.name for path in Path("page").iterdir()) == ["README.md", "figure.png", "table.json"]
    table = json.loads(Path("page/table.json").read_text())
    assert table["command"] == "ckgconv compare one/seed0 one/seed1 two/seed0 two/seed1/record.json --out page"
    page = Path("page/README.md").read_text()
    assert "| one/seed0 | zinc | 0 | finished |" in page
    code, out, _ = ckgconv("compare", *runs, "--json")
    found = json.loads(out)
    assert [each["recipe"] for each in found["recipes"]] == ["zinc", "zinc-grit"]
    assert found["metric"] == "mae"
    assert len(found["runs"]) == 4
    assert set(found["tests"][0]) == {"first", "second", "p", "why", "told_apart", "verdict"}


def test_the_screen_has_every_p_value_of_the_page(ckgconv, tmp_path):
    names = ("zinc", "zinc-grit", "zinc-gps")
    runs = [
        run
        for place, name in enumerate(names)
        for run in write_runs(tmp_path, name, [0.1 + place / 50, 0.11 + place / 50], chosen=recipe(name))
    ]
    code, out, err = ckgconv("compare", *runs, "--out", "page")
    assert code == 0, err
    rows = [line.strip("| ").split(" | ") for line in Path("page/README.md").read_text().splitlines()]
    pairs = [row for row in rows if len(row) == 3 and row[0] in names]
    assert {frozenset(row[:2]) for row in pairs} == {frozenset(pair) for pair in combinations(names, 2)}
    for *recipes, verdict in pairs:
        assert "p = 0." in verdict
        assert any(verdict in line and all(name in line for name in recipes) for line in out.splitlines())


def test_mistakes_are_sentences(ckgconv):
    for arguments, sentence in (
        (["nowhere", "there"], "nowhere/record.json cannot be read as text"),
        (["nowhere"], "1 run was given: give at least two to compare."),
    ):
        Path("nowhere").mkdir(exist_ok=True)
        code, _, err = ckgconv("compare", *arguments)
        assert code == 2
        assert err.startswith(f"Error: {sentence}")
