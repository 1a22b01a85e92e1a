"""The file of a campaign: what it means, and every way in which it can be wrong."""

import json
from pathlib import Path

import pytest
from campaign_files import SMALL, campaign, values

from ckgconv import InputError
from ckgconv.campaigns.plan import campaign_file, campaign_from_json, read_campaign, shipped
from ckgconv.nn.models import build_model


def test_a_grid_is_every_recipe_with_every_change_precision_and_seed():
    made = campaign(grid={"recipes": ["zinc", "zinc-grit"], "seeds": [0, 1], "changes": [[], ["training.epochs=9"]]})
    runs = made.runs()
    assert len(runs) == len({run.name for run in runs}) == 8
    assert [run.name for run in runs[:2]] == ["zinc-32-seed0", "zinc-32-seed1"]
    assert runs[2].resolved().training.epochs == 9
    assert runs[2].label == "zinc training.epochs=9, 32"
    assert campaign_from_json(made.to_json(), "copy") == made


def test_the_order_of_changes_does_not_matter():
    (one,), (other,) = (campaign(grid={"changes": [each]}).runs() for each in (SMALL, SMALL[::-1]))
    assert one == other


@pytest.mark.parametrize("name", shipped())
def test_campaigns_of_the_package_can_be_read(name):
    made = read_campaign(name)
    assert made.name == name
    assert made.runs()


def test_the_shipped_campaigns():
    runs = {name: read_campaign(name).runs() for name in shipped()}
    assert {name: len(each) for name, each in runs.items()} == {
        "main-table": 32,
        "zinc-precision": 4,
        "models-zinc": 7,
        "hybrids-zinc": 8,
        "levers-zinc": 32,
        "schedules-zinc": 12,
        "combinations-zinc": 18,
        "levers-pattern": 14,
        "levers-cluster": 12,
        "levers-superpixels": 28,
        "levers-peptides": 14,
        "ablations-zinc": 30,
    }
    hybrid = runs["hybrids-zinc"][0].resolved().training
    assert (hybrid.epochs, hybrid.warmup_epochs) == (200, 10)
    precisions = {name: {run.precision for run in each} for name, each in runs.items()}
    assert precisions == {name: {"32"} if name == "zinc-precision" else {"bf16"} for name in runs}


def test_the_main_table_trains_two_seeds_of_everything_first():
    runs = read_campaign("main-table").runs()
    early = {run.recipe for run in runs[:16] if run.seed < 2}
    assert early == {"zinc", "mnist", "cifar10", "pattern", "cluster", "peptides-func", "zinc-grit", "zinc-hybrid"}
    assert not any(run.changes for run in runs)


@pytest.mark.parametrize("name", [each for each in shipped() if each.startswith(("levers-", "schedules-"))])
def test_levers_are_judged_by_validation_against_the_published_recipe(name):
    made = read_campaign(name)
    assert not made.final
    for recipe in {run.recipe for run in made.runs()}:
        seeds = {}
        for run in made.runs():
            if run.recipe == recipe:
                seeds.setdefault(run.changes, set()).add(run.seed)
        assert all(each == {0, 1} for each in seeds.values())
        unchanged = ("training.epochs", "training.warmup_epochs", "training.metrics")
        assert all(change.startswith(unchanged) for change in next(iter(seeds)))  # the first row: but shortened


def test_combinations_are_judged_by_validation_each_beside_its_network_without_levers():
    made = read_campaign("combinations-zinc")
    runs, encoding = made.runs(), "model.encoding=rrwp_cycles_rings"
    assert not made.final
    # Candidates come first, then the same networks unchanged; CKGCN unchanged is the first row of levers-zinc.
    assert [run.recipe for run in runs[:6:2]] == ["zinc-hybrid", "zinc-grit", "zinc"]
    assert all(encoding in run.changes for run in runs[:6])
    assert [run.recipe for run in runs[6:10:2]] == ["zinc-hybrid", "zinc-grit"]
    assert not any(change.startswith("model.") for run in runs[6:10] for change in run.changes)
    assert {run.seed for run in runs} == {0, 1}
    lengths = {(run.resolved().training.epochs, run.resolved().training.metrics) for run in runs}
    assert lengths == {(400, ("trimmed_mae",))}  # those of levers-zinc


@pytest.mark.parametrize("name", shipped())
def test_every_run_is_within_the_budget_of_its_data_set(name):
    made = {
        (run.recipe, *(each for each in run.changes if each.startswith("model."))): run
        for run in read_campaign(name).runs()
    }
    for run in made.values():
        model = run.resolved().model
        most = 110_000 if model.position_channels else 500_000
        assert sum(weight.numel() for weight in build_model(model).parameters()) <= most, run.label


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"format": 2}, r"has the format 2, and this version reads format 1"),
        ({"format": None}, r"has the format None"),
        ({"finel": True}, r"has no value 'finel': did you mean final\?"),
        ({"final": "yes"}, r"final is 'yes': give true or false"),
        ({"name": "a/b"}, r"name is 'a/b': use letters"),
        ({"name": ".."}, r"name is '\.\.': use letters"),
        ({"grids": []}, r"grids is empty"),
        ({"grids": {}}, r"grids is \{\}: give a list"),
        ({"grid": {"seeds": []}}, r"grids\[0\]\.seeds is empty"),
        ({"grid": {"seeds": [-1]}}, r"grids\[0\]\.seeds\[0\] is -1: give at least 0"),
        ({"grid": {"seeds": [0, 0]}}, r"seed 0 twice: give it once"),
        ({"grid": {"seed": [0]}}, r"grids\[0\] has no value 'seed': did you mean seeds\?"),
        ({"grid": {"precisions": ["16"]}}, r"precisions\[0\] is '16': give one of 32, tf32, bf16, 64"),
        ({"grid": {"recipes": ["zink"]}}, r"There is no recipe 'zink': did you mean zinc\?"),
        ({"grid": {"changes": ["model.width=8"]}}, r"changes\[0\] is 'model.width=8': give a list of a text"),
        ({"grid": {"changes": [["model.widht=8"]]}}, r"model\.widht is not a value of a recipe"),
        ({"grid": {"changes": [["model.width"]]}}, r"has no '='"),
        ({"grid": {"changes": [["model.width=8", "model.width=9"]]}}, r"changes one value of zinc-demo twice"),
        (
            {"grid": {"recipes": ["zinc-grit"], "changes": [["model.width=7"]]}},
            r"zinc-grit model\.width=7, 32: model\.heads",
        ),
        ({"grid": {"changes": [["training.loss=none"]]}}, r"small\.json, zinc-demo training\.loss=none, 32: "),
    ],
)
def test_mistakes_are_sentences(changed, sentence):
    with pytest.raises(InputError, match=sentence):
        campaign(**changed)


@pytest.mark.parametrize(("text", "sentence"), [("{", "is not JSON"), ("[]", "is not a group of values")])
def test_what_is_no_campaign_is_refused(text, sentence):
    with pytest.raises(InputError, match=sentence):
        campaign_from_json(text, "file")


def test_a_missing_value_is_named():
    kept = {name: value for name, value in values().items() if name not in ("shows", "final")}
    with pytest.raises(InputError, match=r"file lacks shows: add what is missing\."):
        campaign_from_json(json.dumps(kept), "file")


def test_what_a_user_may_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.json").write_text(json.dumps(values()))
    assert campaign_file("mine.json") == Path("mine.json")
    Path("folder").mkdir()
    with pytest.raises(InputError, match=r"folder has no campaign\.json"):
        campaign_file("folder")
    Path("folder/campaign.json").write_text(json.dumps(values()))
    assert read_campaign("folder").name == "small"
    with pytest.raises(InputError, match="There is no campaign 'main-tabel': did you mean main-table"):
        campaign_file("main-tabel")
    with pytest.raises(InputError, match=r"none\.json does not exist"):
        campaign_file("none.json")
