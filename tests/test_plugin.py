"""Plugins: entries that installed packages add through Python entry points, without a fork."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

import ckgconv
from ckgconv import InputError
from ckgconv.cli import main
from ckgconv.data import CATALOGUE
from ckgconv.engine.optimizers import OPTIMIZERS
from ckgconv.nn.models import MODELS
from ckgconv.pe import COORDINATES
from ckgconv.recipes import RECIPES, recipe
from ckgconv.registry import Registry, UnknownName
from ckgconv.tasks.fit import check_task
from ckgconv.tasks.losses import LOSSES
from ckgconv.tasks.metrics import METRICS

REGISTRIES = (COORDINATES, LOSSES, METRICS, OPTIMIZERS, CATALOGUE, MODELS, RECIPES)
SOURCE = Path(ckgconv.__file__).parents[1]


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which pip has installed the package under tests/plugin."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("plugin")
    # A copy, since building leaves files next to the source.
    shutil.copytree(Path(__file__).parent / "plugin", folder / "source")
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-build-isolation", "--no-index"]
    target = ["--target", str(folder / "site"), str(folder / "source")]
    subprocess.run([sys.executable, "-m", "pip", "install", *quiet, *target], check=True)
    return folder / "site"


def run(folder, site, *arguments):
    """The command line in a process of its own, in which the package is installed."""
    paths = os.pathsep.join([str(site), str(SOURCE)])
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "ckgconv", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


def test_a_package_adds_data_model_coordinate_loss_metric_and_optimiser(installed, tmp_path):
    trained = run(tmp_path, installed, "train", "rings", "--out", "run", "--device", "cpu", "--json")
    assert trained.returncode == 0, trained.stderr
    result = json.loads(trained.stdout)
    assert result["metric"] == "smape"
    assert result["mean_predictor"] > 0
    saved = json.loads((tmp_path / "run" / "recipe.json").read_text())
    assert (saved["model"]["kind"], saved["model"]["output_scale"]) == ("scaled_ckgcn", 4.0)
    assert saved["training"]["optimizer"] == "nadam"
    losses = [entry["train_loss"] for entry in json.loads((tmp_path / "run" / "record.json").read_text())["epochs"]]
    assert losses[-1] < losses[0]
    again = run(tmp_path, installed, "evaluate", "run", "--device", "cpu", "--json")
    assert json.loads(again.stdout)["value"] == result["best"]["test"]
    listed = run(tmp_path, installed, "data", "list", "--json")
    assert json.loads(listed.stdout)["rings"] == {
        "task": "size of a ring, one value per graph",
        "source": "read by its package",
    }


def offer(folder, monkeypatch, points, **modules):
    """Write modules and the metadata of a package whose entry points are `points`: (group, {name: value}) each."""
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(text)
    description = folder / "offered-0.1.dist-info"
    description.mkdir()
    (description / "METADATA").write_text("Metadata-Version: 2.1\nName: offered\nVersion: 0.1\n")
    lines = [f"[{group}]\n" + "".join(f"{name} = {to}\n" for name, to in entries.items()) for group, entries in points]
    (description / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(str(folder))


def test_an_entry_is_imported_when_it_is_looked_up(tmp_path, monkeypatch):
    points = [("ckgconv.tests", {"one": "offered_one:ENTRY", "two": "offered_broken:ENTRY"})]
    offer(tmp_path, monkeypatch, points, offered_one="ENTRY = 41", offered_broken="import no_such_module")
    registry = Registry("number", "ckgconv.tests", {"zero": 0}, int)
    assert list(registry) == ["zero", "one", "two"]
    assert "offered_one" not in sys.modules
    assert registry["one"] == 41
    assert "two" in registry
    with pytest.raises(
        InputError, match=r"The number 'two' of the installed package offered cannot be imported .*no_such_module"
    ):
        registry["two"]


def test_an_entry_of_another_type_is_refused(tmp_path, monkeypatch):
    points = [("ckgconv.tests", {"text": "offered_text:ENTRY"}), ("ckgconv.metrics", {"text": "offered_text:ENTRY"})]
    offer(tmp_path, monkeypatch, points, offered_text="ENTRY = 'a text'")
    with pytest.raises(InputError, match="of the installed package offered is a str, not a Metric"):
        METRICS["text"]
    with pytest.raises(InputError, match="is a str, not something to call"):
        Registry("function", "ckgconv.tests", {})["text"]


def test_a_broken_package_hides_no_other_error(tmp_path, monkeypatch):
    offer(tmp_path, monkeypatch, [("ckgconv.metrics", {"broken": "offered_nothing:ENTRY"})])
    with pytest.raises(InputError, match="is judged by mae"):
        check_task(replace(recipe("zinc").training, metric="accuracy"))


def test_a_package_that_cannot_be_imported_is_one_error_message(tmp_path, monkeypatch, capsys):
    points = [("ckgconv.losses", {"broken": "offered_failing:LOSS"})]
    offer(tmp_path, monkeypatch, points, offered_failing="raise RuntimeError('the wrong version')")
    monkeypatch.setattr(sys, "argv", ["ckgconv", "train", "zinc", "--set", "training.loss=broken"])
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main()
    assert stop.value.code == 2
    assert capsys.readouterr().err == (
        "Error: The loss 'broken' of the installed package offered cannot be imported (the wrong version): "
        "repair or remove that package.\n"
    )


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.group)
def test_no_package_can_replace_a_built_in_entry(tmp_path, monkeypatch, registry):
    ours = next(iter(registry))
    entry = registry[ours]
    offer(tmp_path, monkeypatch, [(registry.group, {ours: "offered_other:ENTRY"})], offered_other="ENTRY = None")
    assert registry[ours] is entry
    assert list(registry).count(ours) == 1


@pytest.mark.parametrize("registry", REGISTRIES, ids=lambda registry: registry.group)
def test_the_error_about_an_unknown_name_suggests_the_nearest(tmp_path, monkeypatch, registry):
    ours = next(iter(registry))
    with pytest.raises(UnknownName, match=rf"There is no {registry.noun} '{ours}x': did you mean {ours}\?"):
        registry[f"{ours}x"]
    # Names that packages add are suggested too.
    offer(tmp_path, monkeypatch, [(registry.group, {"wonderful": "offered_other:ENTRY"})])
    with pytest.raises(UnknownName, match=r"did you mean wonderful\?"):
        registry["wonderfull"]
