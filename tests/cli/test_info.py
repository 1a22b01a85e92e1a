import json
import subprocess
import sys

import pytest
from golden import param_counts
from typer.testing import CliRunner

from ckgconv.cli import app, main


@pytest.mark.parametrize("name", param_counts())
def test_json_names_the_published_number_of_trainable_parameters(name):
    result = CliRunner().invoke(app, ["info", name, "--json"])
    report = json.loads(result.stdout)
    assert report["recipe"] == name
    assert report["parameters"]["trainable"] == param_counts()[name]["trainable"]
    assert sum(report["parameters"]["by_component"].values()) == report["parameters"]["trainable"]


def test_table_shows_total_and_components():
    result = CliRunner().invoke(app, ["info", "zinc"])
    assert "432,919" in result.stdout
    assert "degree scalers" in result.stdout


def test_a_typo_is_a_sentence_and_exit_code_2(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["ckgconv", "info", "zinx"])
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == "Error: There is no recipe 'zinx': did you mean zinc?\n"


def test_installed_command_runs():
    done = subprocess.run(
        [sys.executable, "-c", "from ckgconv.cli import main; main()", "info", "mnist", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout)["parameters"]["trainable"] == 102_324
