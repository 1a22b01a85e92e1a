import json

import pytest

from ckgconv.cli import repeat_options


def test_prints_the_table_and_writes_the_page(ckgconv, tmp_path):
    code, out, _ = ckgconv("study", "oversmoothing", "--epochs", "1", "--seeds", "0", "7")
    assert code == 0
    assert "6-layer CKGCN" in out
    folder = tmp_path / "results" / "studies" / "oversmoothing"
    assert sorted(path.name for path in folder.iterdir()) == ["README.md", "figure.png", "table.json"]
    table = json.loads((folder / "table.json").read_text())
    assert table["seeds"] == [0, 7]
    assert table["command"] == "ckgconv study oversmoothing --epochs 1 --seeds 0 7"


def test_out_is_where_the_page_goes(ckgconv, tmp_path):
    code, _, _ = ckgconv("study", "oversmoothing", "--epochs", "1", "--seeds", "0", "--out", "elsewhere")
    assert code == 0
    assert (tmp_path / "elsewhere" / "figure.png").exists()
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["oversmoothin"], "There is no study 'oversmoothin': did you mean oversmoothing?"),
        (["oversmoothing", "--epochs", "0"], "--epochs is 0: give at least 1."),
        (["significance", "--epochs", "3"], "--epochs was given, but this study does not read it: leave it out."),
        (
            ["significance", "--runs", "a", "b"],
            "--runs was given without --out, and results/studies/significance is for the paper's numbers: add --out.",
        ),
        (["oversmoothing", "--seeds", "1", "1"], "The same seed was given twice: give each once."),
    ],
)
def test_errors_are_a_sentence_and_exit_code_2(ckgconv, arguments, sentence):
    code, _, err = ckgconv("study", *arguments)
    assert code == 2
    assert err == f"Error: {sentence}\n"


def test_help_names_the_studies(ckgconv):
    code, out, _ = ckgconv("study", "--help")
    assert code == 0
    assert "oversmoothing" in out


def test_several_values_after_one_option():
    repeated = ["study", "significance", "--runs", "a", "--runs", "b", "--against", "c", "--against", "d"]
    assert repeat_options(["study", "significance", "--runs", "a", "b", "--against", "c", "d"]) == repeated
    assert repeat_options(["bench", "--against", "c", "zinc"]) == ["bench", "--against", "c", "zinc"]


def test_ensembles_and_baselines_read_runs(ckgconv, tmp_path):
    settings = ["model.width=8", "model.blocks=1", "model.steps=3", "data.limit=4", "training.epochs=1"]
    train = ["--set", *settings, "--device", "cpu", "--out"]
    assert ckgconv("train", "zinc", "--seed", "0", "1", *train, "ckgcn")[0] == 0
    assert ckgconv("train", "zinc-grit", *train, "grit")[0] == 0
    arguments = ["--ckgcn", "ckgcn/seed0", "ckgcn/seed1", "--grit", "grit", "--device", "cpu"]
    code, out, err = ckgconv("study", "ensembles", *arguments)
    assert code == 0, err
    assert "CKGCN ensemble, only 2 CKGCN" in out
    folder = tmp_path / "results" / "studies" / "ensembles"
    assert len(list((folder / "predictions").iterdir())) == 3
    code, _, err = ckgconv("study", "ensembles", "--runs", "ckgcn/seed0")
    assert (code, err) == (2, "Error: --runs was given, but this study does not read it: leave it out.\n")
    code, _, err = ckgconv("study", "baselines", "--runs", "ckgcn")
    assert code == 2
    assert err.startswith("Error: No finished run of an unchanged benchmark recipe is under ckgcn: train one")
