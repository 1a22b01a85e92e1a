"""Molecules to pretrain on: which are chosen, what is to be learned of them, and the files in which they are kept."""

import gzip
import json

import numpy as np
import pytest
import torch

from ckgconv.checks import InputError
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.data.properties import ENVIRONMENTS, environments
from ckgconv.engine.describe import (
    MOST_DEVIATIONS,
    ROUNDING,
    Selection,
    check_packed_name,
    choose,
    describe,
    described,
    load_described,
    origin_file,
    save_described,
    smiles_of,
)

SMILES = ("CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl", "CC(C)O", "C1CCCCC1", "OCC", "C1CC", "CCS")


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "all.smi.gz"
    with gzip.open(path, "wt") as file:
        file.write("\n".join(f"{each} name" for each in SMILES))
    return path


def test_molecules_of_other_tables_are_left_out_by_their_canonical_form(source, tmp_path):
    table = tmp_path / "table.csv"
    table.write_text("smiles,y\nc1ccccc1,1\nNCC,2\n")
    smiles, counts = choose(Selection(source, (table,), molecules=100))
    assert "c1ccccc1" not in smiles
    assert "CCN" not in smiles
    found = (counts.drawn, counts.excluded, counts.unreadable, counts.repeated, counts.used)
    assert found == (10, 2, 1, 1, 6)
    assert counts.excluded_by == ("table.csv",)
    assert len(choose(Selection(source, molecules=3))[0]) == 3
    assert choose(Selection(source, molecules=3)) != choose(Selection(source, molecules=3, seed=1))


def test_targets_are_standardised_descriptors():
    data = described(["CCO", "c1ccccc1", "CC(=O)O", "CCN"])
    assert data.y.shape == (4, len(DESCRIPTORS))
    assert data.y.abs().max() <= MOST_DEVIATIONS
    assert data.train.tolist() == [0, 1, 2]
    assert data.val.tolist() == [3]
    assert torch.allclose(data.y[:3].mean(0), torch.zeros(1), atol=ROUNDING)
    assert torch.equal(data.y / ROUNDING, (data.y / ROUNDING).round())


def test_other_properties_can_be_learned(source, tmp_path):
    found = describe(Selection(source, molecules=4, properties="environments"))
    assert found.data.y.shape == (4, len(ENVIRONMENTS))
    every = describe(Selection(source, molecules=4, properties="both")).data.y
    assert torch.equal(every, torch.cat([describe(Selection(source, molecules=4)).data.y, found.data.y], dim=1))
    save_described(found, tmp_path / "kept.npz")
    assert load_described(tmp_path / "kept.npz").origin.properties == "environments"
    with pytest.raises(InputError, match=r"--properties is 'masses': choose one of descriptors, environments, both"):
        describe(Selection(source, molecules=4, properties="masses"))


def test_environments_are_counted_with_those_of_the_same_hash():
    ethane, propane = environments(["CC", "CCC"])
    assert sorted(np.expm1(ethane[ethane > 0]).round().tolist()) == [1, 2]  # the molecule, and two atoms that are alike
    assert np.expm1(propane).sum().round() == 6  # three atoms, and each with its neighbours
    with pytest.raises(InputError, match="is not a valid SMILES"):
        environments(["C1CC"])


def test_described_molecules_are_kept_with_how_they_were_chosen(source, tmp_path):
    found = describe(Selection(source, molecules=4))
    path = tmp_path / "kept.npz"
    save_described(found, path)
    again = load_described(path)
    assert again.origin == found.origin
    assert torch.equal(again.data.y, found.data.y)
    assert torch.equal(again.data.train, found.data.train)
    origin_file(path).write_text(json.dumps({"source": "a.smi", "counts": {"used": "4"}}))
    with pytest.raises(InputError, match=r"origin.json cannot be used .*counts.*write it with the packed file by"):
        load_described(path)
    origin_file(path).unlink()
    with pytest.raises(InputError, match="cannot be read as text"):
        load_described(path)
    with pytest.raises(InputError, match=r"give a name that ends with .npz"):
        save_described(found, tmp_path / "kept.csv")


def test_files_that_hold_no_molecules_are_refused(tmp_path):
    for name, text, sentence in (
        ("a.csv", "name\nCCO\n", "no column 'smiles'"),
        ("a.smi.gz", "CCO\n", "cannot be read"),
        ("b.smi", "", "0 molecules to train on"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=sentence):
            choose(Selection(tmp_path / name))
    with pytest.raises(InputError, match="no file"):
        list(smiles_of(tmp_path / "none.smi"))
    with pytest.raises(InputError, match="--seed is -1"):
        choose(Selection(tmp_path / "b.smi", seed=-1))
    with pytest.raises(InputError, match="is a folder"):
        check_packed_name(tmp_path)
    with pytest.raises(InputError, match="--molecules is 1"):
        choose(Selection(tmp_path / "b.smi", molecules=1))
