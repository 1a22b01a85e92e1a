"""What is printed contains no sequence that a terminal obeys, and no markup."""

import pytest

from ckgconv.cli.terminal import console, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain ψ text\nof two lines", "plain ψ text\nof two lines"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\x9bb\rc\x00", r"a\x9bb\rc\x00"),
        ("\u202eabc", r"\u202eabc"),
        ("\ud800", r"\ud800"),
    ],
)
def test_control_characters_are_spelled_out(text, shown):
    assert plain(text) == shown


def test_words_are_no_markup(capsys):
    console(width=80).print("a [/] b [red]c[/red] :smile: \x1b[2J")
    assert capsys.readouterr().out == "a [/] b [red]c[/red] :smile: \\x1b[2J\n"


def test_errors_and_names(ckgconv, tmp_path):
    (tmp_path / "t.csv").write_text("smiles,\x1b[31mred\nC,1\n")
    code, _, err = ckgconv("train", "t.csv", "--target", "blue")
    assert (code, "\x1b" in err) == (2, False)
    code, _, err = ckgconv("train", "zinc", "--set", "name=../../evil")
    assert (code, "name is '../../evil': give a name" in err) == (2, True)
    small = ["model.width=4", "model.blocks=1", "model.steps=2", "data.limit=4", "training.epochs=1"]
    code, out, err = ckgconv("train", "zinc", "--set", *small, "name=[red]cost$^$x", "--device", "cpu")
    assert code == 0, err
    assert "runs/[red]cost$^$x-seed0" in out
