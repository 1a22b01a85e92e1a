"""A saved run knows its data: other data is refused when it is opened, evaluated or resumed.

Covers `ckgconv.engine.data_identity`.
"""

import json
import math
from dataclasses import fields, replace
from pathlib import Path

import pytest
import torch
from small_data import small_dataset

from ckgconv import InputError, open_run, predict_packed, recipe, train
from ckgconv.data import load, load_packed, save_packed, zinc
from ckgconv.engine.data_identity import DataIdentity, identity_of
from ckgconv.engine.opened import open_network
from ckgconv.engine.record import load_record
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.engine.watcher import Silence
from ckgconv.recipe import DataRecipe
from ckgconv.recipe.values import read


def small(name="zinc", data="zinc", **training):
    chosen = recipe(name)
    depth = {"blocks": 1} if hasattr(chosen.model, "blocks") else {}
    model = replace(chosen.model, width=4, steps=2, **depth)
    settings = {"epochs": 2, "warmup_epochs": 0, "batch_size": 4, **training}
    return replace(
        chosen,
        data=replace(chosen.data, name=data),
        model=model,
        training=replace(chosen.training, **settings),
    )


def test_what_was_given_must_be_given_again(tmp_path):
    """Another data set of the recipe's name was evaluated in its place."""
    chosen = replace(small("large-sbm", "large-sbm", epochs=6), name="mine")
    sbm = load(chosen.data)
    mine = replace(sbm, y=sbm.y.flip(0))
    run = train(chosen, data=mine, folder=tmp_path / "run", device="cpu")
    opened = open_run(tmp_path / "run", "cpu")
    with pytest.raises(InputError, match=r"trained on data given in Python: .* open_run\(folder, data=…\)"):
        opened.evaluate()
    torch.testing.assert_close(predict_packed(opened, mine).values, predict_packed(run, mine).values)
    assert open_run(tmp_path / "run", "cpu", data=mine).evaluate() == pytest.approx(run.record.test)
    with pytest.raises(InputError, match=r"The data given is not what .*run was trained on: it has the same counts"):
        open_run(tmp_path / "run", "cpu", data=sbm)


def test_the_record_has_the_identity(tmp_path):
    chosen = small()
    data = small_dataset(chosen)
    run = train(chosen, data=data, folder=tmp_path / "run", device="cpu")
    identity = run.record.data
    assert isinstance(identity, DataIdentity)
    assert (identity.name, identity.given, identity.graphs, identity.train) == ("zinc", True, 18, 6)
    assert (identity.nodes, identity.edges) == (len(data.x), data.edge_index.shape[1])
    assert load_record(tmp_path / "run").data == identity
    best = json.loads((tmp_path / "run" / "best.json").read_text())["state"]["record"]["data"]
    assert read(best, DataIdentity) == identity


def test_stored_differently_is_the_same():
    data = small_dataset(small("cifar10"))
    moved = replace(
        data,
        y=data.y.to(torch.uint8),
        x=data.x.double(),
        edge_index=data.edge_index.to(torch.int16).contiguous(),
        train=data.train.int(),
        pos=data.pos.T.contiguous().T,
    )
    assert identity_of(moved, "a", True) == identity_of(data, "a", True)
    signed, odd = data.x.clone(), data.x.clone()
    signed[0, 0], odd[0, 0] = 0.0, -0.0
    one, other = (identity_of(replace(data, x=each), "a", True) for each in (signed, odd))
    assert one == other
    gaps = [torch.full((1,), value) for value in (math.nan, -math.nan)]
    one, other = (identity_of(replace(data, pos=gap), "a", True).digest for gap in gaps)
    assert one == other


def test_every_array_counts():
    data = small_dataset(small("cifar10"))
    digest = identity_of(data, "a", True).digest
    for field in fields(data):
        value = getattr(data, field.name)
        if value is None:
            continue
        changed = value.clone()
        changed.view(-1)[-1] += 1
        assert identity_of(replace(data, **{field.name: changed}), "a", True).digest != digest, field.name
    assert identity_of(replace(data, pos=None), "a", True).digest != digest
    assert identity_of(replace(data, x=data.x.reshape(1, -1)), "a", True).digest != digest


def test_computed_edges_of_superpixels_do_not_count():
    """Their attributes are exponentials, which machines round differently."""
    data = small_dataset(small("cifar10"))
    nudged = replace(data, edge_attr=data.edge_attr.nextafter(torch.ones(())))
    assert identity_of(data, "cifar10", False) == identity_of(nudged, "cifar10", False)
    assert identity_of(data, "cifar10", True) != identity_of(nudged, "cifar10", True)


def test_a_changed_file_is_named(tmp_path):
    file = tmp_path / "mine.npz"
    data = zinc().limited(6)
    save_packed(data, file)
    chosen = small(data=str(file))
    run = train(chosen, folder=tmp_path / "run", device="cpu")
    assert not run.record.data.given
    assert open_run(tmp_path / "run", "cpu").evaluate() == pytest.approx(run.record.test)
    assert open_run(tmp_path / "run", "cpu", data=load_packed(file)).evaluate() == pytest.approx(run.record.test)
    save_packed(data.limited(5), file)
    with pytest.raises(
        InputError, match=r"mine.npz is no longer what .*run was trained on: it has 15 graphs, .*not 18"
    ):
        open_run(tmp_path / "run", "cpu")
    with pytest.raises(InputError, match="no longer what"):
        train(chosen, folder=tmp_path / "run", device="cpu", resume=True)
    open_network(tmp_path / "run", "cpu")


def test_a_named_data_set_is_looked_up_in_its_folder(tmp_path):
    chosen = small()
    save_packed(zinc().limited(6), tmp_path / "zinc12k.npz")
    train(chosen, data=tmp_path, folder=tmp_path / "run", device="cpu")
    open_run(tmp_path / "run", "cpu", data=tmp_path)
    with pytest.raises(InputError, match=r"zinc12k\.npz is no longer what"):
        open_run(tmp_path / "run", "cpu")


class Stop(Silence):
    def epoch(self, entry):
        raise KeyboardInterrupt


@pytest.mark.parametrize("damaged", [False, True])
def test_other_data_does_not_resume_a_run(tmp_path, monkeypatch, damaged):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)
    chosen = small()
    data = small_dataset(chosen)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        train(chosen, data=data, folder=folder, device="cpu", watcher=Stop())
    if damaged:
        (folder / "record.json").write_text("{")
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    with pytest.raises(InputError, match="The data given is not what"):
        train(chosen, data=replace(data, y=-data.y), folder=folder, device="cpu", resume=True)
    with pytest.raises(InputError, match="resume it in Python"):
        train(chosen, folder=folder, device="cpu", resume=True)
    assert {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()} == before
    assert len(train(chosen, data=data, folder=folder, device="cpu", resume=True).record.epochs) == 2


def test_a_run_of_an_earlier_version_gets_the_identity_when_resumed(tmp_path):
    chosen = small()
    data = small_dataset(chosen)
    folder = tmp_path / "run"
    identity = train(chosen, data=data, folder=folder, device="cpu").record.data
    for path in (folder / "record.json", *folder.glob("checkpoints/*.json"), folder / "best.json"):
        _without_identity(path)
    opened = open_run(folder, "cpu", data=data)
    assert opened.record.data is None
    assert train(chosen, data=data, folder=folder, device="cpu", resume=True).record.data == identity


def _without_identity(path: Path) -> None:
    from ckgconv.files import digest

    values = json.loads(path.read_text())
    if path.name == "record.json":
        del values["data"]
    else:
        del values["state"]["record"]["data"]
        values["state_sha256"] = digest(json.dumps(values["state"], sort_keys=True).encode())
    path.write_text(json.dumps(values))


def test_the_limit_is_part_of_the_data(tmp_path):
    chosen = small()
    chosen = replace(chosen, data=DataRecipe("zinc", limit=5))
    run = train(chosen, data=zinc(), folder=tmp_path / "run", device="cpu")
    assert run.record.data.graphs == 15
    open_run(tmp_path / "run", "cpu", data=zinc())
