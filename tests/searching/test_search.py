import json
from types import SimpleNamespace

import pytest
from molecules_for_tests import SMILES

from ckgconv import InputError, open_run
from ckgconv.engine.recipe_file import read_recipe
from ckgconv.searching import search as module
from ckgconv.searching import trial as trials
from ckgconv.searching.figure import draw_search, importances
from ckgconv.searching.page import write_page
from ckgconv.searching.search import SearchSettings, draw_again, ended, run_search
from ckgconv.searching.trial import FAILURE, TrialSettings

CPU = TrialSettings("cpu")


def test_the_first_trial_is_the_recipe_itself_and_the_best_is_tested(ended_search):
    search, lines, run = ended_search
    study = search.study()
    assert len(ended(study)) == 5
    assert ended(study)[0].params["model.width"] == search.recipe.model.width
    assert lines[-1].endswith("it is trained again, and tested")
    assert run.record.test is not None
    assert read_recipe(search.path / "best.json") == run.recipe == open_run(search.path / "best").recipe
    assert run.record.best.val == study.best_value
    assert search.tested


def test_no_trial_is_tested(search, monkeypatch):
    tested = []

    def spy(*arguments, **given):
        run = real(*arguments, **given)
        tested.append((given.get("test", True), run.record.test is not None))
        return run

    real = trials.train
    monkeypatch.setattr(trials, "train", spy)
    monkeypatch.setattr(module, "train", spy)
    run_search(search, SearchSettings(2, where=CPU))
    assert tested == [(False, False), (False, False), (True, True)]


def test_an_ended_search_does_not_go_on(ended_search):
    search, _, run = ended_search
    assert run_search(search, SearchSettings(5, where=CPU)).record.test == run.record.test
    with pytest.raises(InputError, match="would use the test split twice"):
        run_search(search, SearchSettings(6, where=CPU))


def test_an_interrupted_search_goes_on(search):
    class Killed(BaseException):
        pass

    def kill(line):
        raise Killed

    with pytest.raises(Killed):
        run_search(search, SearchSettings(3, where=CPU), kill)
    assert not search.tested
    study = search.study()
    left = study.ask(search.space.distributions())  # as a killed process leaves it
    run_search(search, SearchSettings(3, where=CPU))
    found = search.study().get_trials()
    assert [each.state.name for each in found] == ["COMPLETE", "FAIL", "COMPLETE", "COMPLETE"]
    assert found[2].params == left.params
    assert len(ended(search.study())) == 3
    draw_again(search.study())


def test_a_process_that_is_killed_fails_its_trial(search, monkeypatch):
    search.adopt()
    asked = []

    def killed(command, **_):
        asked.append(command)
        return SimpleNamespace(returncode=-9, stderr="")

    monkeypatch.setattr(module.subprocess, "run", killed)
    lines = []
    with pytest.raises(InputError, match=r"has ended with a network\. The last one: its process ended with code"):
        run_search(search, SearchSettings(2, at_once=2, where=TrialSettings("cpu", search.path)), lines.append)
    assert [each[-4:] for each in asked] == [["--device", "cpu", "--data-dir", str(search.path)]] * 2
    assert all("failed: its process ended with code -9" in line for line in lines)
    assert all(FAILURE in each.user_attrs for each in search.study().get_trials())


def test_fewer_than_one_trial_is_refused(search):
    with pytest.raises(InputError, match="--trials is 0"):
        run_search(search, SearchSettings(0))


def test_the_page(ended_search):
    search, _, run = ended_search
    write_page(search, search.study())
    text = (search.path / "README.md").read_text()
    assert f"tested once: test mae {run.record.test:.4f}" in text
    assert text.count("\n| 0 |") == 1
    assert "`training.learning_rate`" in text
    assert set(importances(search.study())) <= set(search.space.entries)
    assert (search.path / "search.png").read_bytes().startswith(b"\x89PNG")


def test_axes_have_the_scale_that_values_were_drawn_by(ended_search, tmp_path, monkeypatch):
    from matplotlib import pyplot

    search, _, _ = ended_search
    monkeypatch.setattr(pyplot, "close", lambda figure: None)
    draw_search(search, search.study(), tmp_path / "search.png")
    figure = pyplot.gcf()
    monkeypatch.undo()
    scales = {each.get_title(loc="left"): each.get_xscale() for each in figure.axes}
    logarithmic = {name for name, entry in search.space.entries.items() if entry.get("log")}
    assert {name for name, scale in scales.items() if scale == "log"} == logarithmic
    assert logarithmic
    (history,) = (each for each in figure.axes if each.get_title(loc="left") == "History")
    assert all(place == round(place) for place in history.get_xticks())
    pyplot.close(figure)


def test_on_the_command_line(tmp_path, monkeypatch, capsys):
    from ckgconv.cli import app

    monkeypatch.chdir(tmp_path)
    rows = "\n".join(f"{smiles},{row % 7}" for row, smiles in enumerate(SMILES))
    (tmp_path / "table.csv").write_text(f"smiles,y\n{rows}\n")
    (tmp_path / "space.json").write_text(json.dumps({"model.width": {"choices": [4, 6]}}))
    tiny = [
        f"--set={each}" for each in ("model.blocks=1", "model.steps=2", "training.epochs=1", "training.warmup_epochs=0")
    ]
    command = [
        "search",
        "table.csv",
        "--target",
        "y",
        "--trials",
        "1",
        "--space",
        "space.json",
        "--device",
        "cpu",
        *tiny,
    ]
    with pytest.raises(InputError, match=r"varies model.width, whose value was given with the command"):
        app([*command, "--set", "model.width=4"], standalone_mode=False)
    app(command, standalone_mode=False)
    told = capsys.readouterr().out
    assert "varied: model.width\n" in told
    assert "tested once" in told
    app(["search", "status", "runs/searches/table", "--json"], standalone_mode=False)
    found = json.loads(capsys.readouterr().out)
    assert found["trials"] == {"COMPLETE": 1, "PRUNED": 0, "FAIL": 0}
    assert found["tested"]
    app(["search", "status", "runs/searches/table"], standalone_mode=False)
    assert "its best recipe was tested" in capsys.readouterr().out
    for wrong in (["search", "status"], ["search", "table.csv", "other"], ["search", "table.csv", "--device", "gpu"]):
        with pytest.raises(InputError):
            app(wrong, standalone_mode=False)
