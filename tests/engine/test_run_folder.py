"""Run folders as they must not be: in use, killed early, without a record, forged.

Covers `ckgconv.engine.saved_state`.
"""

import json
import math
import os
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from interruption import Interruption, StopAfter
from small_data import small_dataset

from ckgconv import InputError, open_run, recipe, train
from ckgconv.engine import checkpoint
from ckgconv.engine.lock import OF_RUN, locked_run
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.run_folder import check_folder, is_free, saved_record
from ckgconv.engine.watcher import Silence


def small(**training):
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    settings = {"epochs": 3, "warmup_epochs": 0, "batch_size": 3, **training}
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


class Heard(Silence):
    def __init__(self):
        self.warnings = []

    def start(self, run, first_epoch):
        self.first_epoch = first_epoch

    def warn(self, sentence):
        self.warnings.append(sentence)


@pytest.fixture(scope="module")
def data():
    return small_dataset(small())


@pytest.fixture(scope="module")
def stopped(tmp_path_factory, data):
    """A run of seed 7 after two of its three epochs."""
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(CheckpointBudget, "share", math.inf)
        with pytest.raises(Interruption):
            train(small(), 7, data=data, folder=folder, device="cpu", precision="64", watcher=StopAfter(5))
    return folder


@pytest.fixture
def folder(stopped, tmp_path):
    return Path(shutil.copytree(stopped, tmp_path / "run"))


def resumed(folder, data, watcher=None, **options):
    options = {"seed": 7, "precision": "64", **options}
    return train(small(), data=data, folder=folder, device="cpu", resume=True, watcher=watcher, **options)


def test_seed_and_precision_are_known_before_the_first_epoch_ends(tmp_path, data):
    folder = tmp_path / "run"
    with pytest.raises(Interruption):
        train(small(), 7, data=data, folder=folder, device="cpu", precision="64", watcher=StopAfter(1))
    assert saved_record(folder).seed == 7
    assert saved_record(folder).data.digest
    with pytest.raises(InputError, match="with seed 7, not 0"):
        resumed(folder, data, seed=0)
    with pytest.raises(InputError, match="with precision 64, not 32"):
        resumed(folder, data, precision="32")
    assert len(resumed(folder, data).record.epochs) == 3


@pytest.mark.parametrize("lost", [["record.json"], ["record.json", "best.json", "best.safetensors"]])
def test_a_lost_record_is_that_of_the_newest_checkpoint(folder, data, lost):
    for name in lost:
        (folder / name).unlink()
    assert saved_record(folder).seed == 7
    with pytest.raises(InputError, match="with seed 7, not 0"):
        resumed(folder, data, seed=0)
    assert resumed(folder, data).record.seed == 7


def test_an_edited_record_does_not_count(folder, data):
    values = json.loads((folder / "record.json").read_text())
    (folder / "record.json").write_text(json.dumps(values | {"seed": 1}))
    with pytest.raises(InputError, match="with seed 7, not 1"):
        resumed(folder, data, seed=1)


def test_a_run_whose_seed_nobody_knows_is_not_resumed(folder, data):
    shutil.rmtree(folder / "checkpoints")
    for name in ("record.json", "best.json"):
        (folder / name).unlink()
    with pytest.raises(InputError, match="seed and precision of its run are not known"):
        resumed(folder, data)


def test_nothing_is_started_by_resuming(tmp_path, data):
    with pytest.raises(InputError, match="holds no run to resume"):
        resumed(tmp_path / "nowhere", data)
    assert not (tmp_path / "nowhere").exists()


def test_a_run_without_its_recipe_is_neither_started_nor_resumed(folder, data):
    (folder / "recipe.json").unlink()
    with pytest.raises(InputError, match=r"a run without its recipe.json: put it back, or choose another folder"):
        resumed(folder, data)
    with pytest.raises(InputError, match=r"already exists: choose another folder with --out"):
        check_folder(folder, small(), 0, "32", resume=False)


@pytest.mark.parametrize("left", [[], [".abc.ckgconv.part"], [".recipe.json.12.part", OF_RUN], ["record.json"]])
def test_what_a_kill_during_the_first_write_left_can_be_started(tmp_path, data, stopped, left):
    folder = tmp_path / "run"
    folder.mkdir()
    for name in left:
        (folder / name).write_text("{")
    if "record.json" in left:
        values = json.loads((stopped / "record.json").read_text())
        (folder / "record.json").write_text(json.dumps(values | {"epochs": [], "best": None}))
    assert is_free(folder)
    check_folder(folder, small(), 0, "32", resume=False)


def test_what_holds_anything_else_cannot(tmp_path, stopped):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "notes.txt").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    shutil.copytree(stopped, tmp_path / "begun")
    (tmp_path / "begun" / "recipe.json").unlink()
    for name in ("notes", "link", "begun"):
        assert not is_free(tmp_path / name)


def test_two_processes_do_not_share_a_folder(tmp_path, data):
    folder = tmp_path / "run"
    second = []

    class Second(Silence):
        def start(self, run, first_epoch):
            for options in ({"seed": 1}, {"seed": 0, "resume": True}):
                with pytest.raises(InputError, match=f"is being trained by process {os.getpid()}"):
                    train(small(), data=data, folder=folder, device="cpu", **options)
                second.append(options)

    train(small(epochs=1), data=data, folder=folder, device="cpu", watcher=Second())
    assert len(second) == 2
    assert not (folder / OF_RUN).exists()


def test_a_lock_empties_no_file_that_a_link_names(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / OF_RUN).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="cannot be written"), locked_run(tmp_path / "run"):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_refused_run_leaves_no_folder(tmp_path, data):
    with pytest.raises(InputError, match="no targets"):
        train(small(), data=replace(data, y=None), folder=tmp_path / "run", device="cpu")
    assert not (tmp_path / "run").exists()


def forge(folder, tensors=None, state=None):
    """Every checkpoint with other content and the digests of it."""
    for stem in [*checkpoint.stems(folder / "checkpoints"), folder / "best"]:
        found, values = checkpoint.load(stem)
        if tensors is not None:
            tensors(found)
        checkpoint.save(stem, found, values if state is None else state(values))


MOMENT, WEIGHT = "optimizer.exp_avg.node_encoder.tables.0.weight", "model.node_encoder.tables.0.weight"
STEP = MOMENT.replace("exp_avg", "step")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.update({MOMENT: torch.zeros(1, 2, dtype=torch.float64)}), r"exp_avg.*has shape \[1, 2\]"),
        (lambda t: t.update({MOMENT: t[MOMENT].float()}), "exp_avg.*float32, not"),
        (lambda t: t.update({MOMENT: t[MOMENT].long()}), "exp_avg.*int64, not"),
        (lambda t: t.update({STEP: t[STEP].half()}), "step.*float16, not one number in float32"),
        (lambda t: t.update({STEP: torch.ones(2)}), r"step.*shape \[2\].*, not one number"),
        (lambda t: t.pop(MOMENT), "does not keep exp_avg_sq, step of 'node_encoder"),
        (lambda t: [t.pop(name) for name in [*t] if name.startswith("optimizer.")], "moments .* are missing"),
        (
            lambda t: t.update({"optimizer.exp_avg.nothing": t[MOMENT].clone()}),
            "of a parameter that the recipe does not have",
        ),
        (lambda t: t.update({"optimizer": t[MOMENT].clone()}), None),
        (lambda t: t.pop(WEIGHT), "the weights lack 'node_encoder"),
        (lambda t: t.update({WEIGHT: t[WEIGHT][:1]}), r"'node_encoder.* of the weights has shape \[1, 8\]"),
        (lambda t: t.update({"model.more": t[WEIGHT].clone()}), "the weights have 'more'"),
        (lambda t: t.pop("best." + WEIGHT.removeprefix("model.")), "the best weights lack"),
        (lambda t: t.update({"average.x": t[WEIGHT].clone()}), "the averaged weights have 'x'"),
    ],
)
def test_forged_tensors_are_no_checkpoint(folder, data, change, words):
    for stem in checkpoint.stems(folder / "checkpoints"):
        found, values = checkpoint.load(stem)
        change(found)
        checkpoint.save(stem, found, values)
    heard = Heard()
    run = resumed(folder, data, heard)
    assert len(run.record.epochs) == 3
    assert heard.first_epoch == (0 if words else 2)
    assert not words or re.search(words, heard.warnings[0])


def record_with(**changes):
    return lambda state: state | {"record": state["record"] | changes}


@pytest.mark.parametrize(
    "change",
    [
        lambda state: {},
        lambda state: {"record": state["record"]},
        lambda state: state | {"record": []},
        lambda state: state | {"scale": 3},
        lambda state: state | {"scale": {"mean": ["a"], "spread": [1]}},
        lambda state: state | {"scale": {"mean": [0.0, 0.0], "spread": [1.0, 1.0]}},
        lambda state: state | {"scale": {"mean": [0.0], "spread": [0.0]}},
        lambda state: state | {"scale": {"mean": [], "spread": []}},
        lambda state: state | {"groups": 3},
        lambda state: state | {"groups": [{"params": 3}]},
        record_with(epochs=[]),
        record_with(epochs=[], best=None),
        record_with(best=None),
        record_with(best={"epoch": 99, "val": 1.0}),
        record_with(seed=3),
        record_with(format=2),
    ],
)
def test_forged_states_are_no_checkpoint(folder, data, change):
    forge(folder, state=change)
    heard = Heard()
    try:
        run = resumed(folder, data, heard)
    except InputError as error:
        assert "seed" in str(error)  # noqa: PT017
    else:
        assert (heard.first_epoch, len(run.record.epochs)) == (0, 3)


@pytest.mark.parametrize(
    ("tensors", "state", "words"),
    [
        (lambda t: t.popitem(), None, "its weights lack"),
        (lambda t: t.update({"more": torch.zeros(1)}), None, "its weights have 'more'"),
        (None, lambda state: {}, "is not the record of a run"),
        (None, lambda state: state | {"scale": {}}, "it lacks scale.mean"),
        (None, record_with(format=2), "it has format 2, and this version of ckgconv reads formats up to 1"),
        (lambda t: t.update({"huge": torch.zeros(2**23)}), None, "and what its recipe describes has at most"),
    ],
)
def test_a_forged_network_is_not_opened(folder, tensors, state, words):
    found, values = checkpoint.load(folder / "best")
    if tensors is not None:
        tensors(found)
    checkpoint.save(folder / "best", found, values if state is None else state(values))
    with pytest.raises(InputError, match=words):
        open_run(folder, device="cpu")


def test_only_checkpoints_are_counted_and_removed_by_their_number(tmp_path):
    tensors, state = {"a": torch.zeros(1)}, {"a": 1}
    (tmp_path / "0-notes.json").write_text("mine")
    for epoch in (999_998, 999_999, 1_000_000):
        checkpoint.save_epoch(tmp_path, epoch, tensors, state)
    assert [stem.name for stem in checkpoint.stems(tmp_path)] == ["1000000", "999999"]
    assert (tmp_path / "0-notes.json").read_text() == "mine"


def test_another_number_of_threads_is_told(folder, data):
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        heard = Heard()
        resumed(folder, data, heard)
    finally:
        torch.set_num_threads(before)
    assert any("where sums are rounded in another order" in each for each in heard.warnings)


def test_a_folder_that_vanished_is_not_filled_again(tmp_path, data):
    folder = tmp_path / "run"

    class Remove(Silence):
        def step(self, graphs, loss):
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.raises(InputError, match="has been moved or emptied during training"):
        train(small(), data=data, folder=folder, device="cpu", watcher=Remove())
    assert not folder.exists()


@pytest.mark.parametrize("name", ["checkpoints", "tensorboard"])
def test_nothing_is_written_through_the_link_of_a_folder(folder, data, name, tmp_path):
    outside = tmp_path / "outside"
    shutil.rmtree(folder / name, ignore_errors=True)
    outside.mkdir()
    (folder / name).symlink_to(outside)
    with pytest.raises(InputError, match=f"{name} is a link, and a run writes nowhere else"):
        resumed(folder, data)
    assert list(outside.iterdir()) == []
