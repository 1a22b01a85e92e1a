"""Pretraining: which molecules are chosen, what they are taught, and that a run can begin with the result."""

import gzip
import json

import pytest
import torch

from ckgconv.checks import InputError
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.engine.initial_weights import take_weights
from ckgconv.engine.pretrain import MOST_DEVIATIONS, Pretraining, choose, described, pretrain, smiles_of
from ckgconv.engine.watcher import Silence
from ckgconv.nn.models import build_model
from ckgconv.recipes.pretraining import molecule_network

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
    chosen = choose(Pretraining(source, (table,), molecules=100))
    assert "c1ccccc1" not in chosen.smiles
    assert "CCN" not in chosen.smiles
    counts = (chosen.drawn, chosen.excluded, chosen.unreadable, chosen.repeated, len(chosen.smiles))
    assert counts == (10, 2, 1, 1, 6)
    assert len(choose(Pretraining(source, molecules=3)).smiles) == 3
    assert choose(Pretraining(source, molecules=3)) != choose(Pretraining(source, molecules=3, seed=1))


def test_targets_are_standardised_descriptors():
    data = described(["CCO", "c1ccccc1", "CC(=O)O", "CCN"])
    assert data.y.shape == (4, len(DESCRIPTORS))
    assert data.y.abs().max() <= MOST_DEVIATIONS
    assert data.train.tolist() == [0, 1, 2]
    assert data.val.tolist() == [3]
    assert torch.allclose(data.y[:3].mean(0), torch.zeros(1), atol=1e-5)


def test_a_run_begins_with_the_pretrained_network(source, tmp_path):
    run, chosen = pretrain(Pretraining(source, molecules=4, epochs=1), tmp_path / "run", Silence(), "cpu")
    counts = json.loads((tmp_path / "run" / "molecules.json").read_text())
    assert counts["used"] == 4
    assert counts["drawn"] == chosen.drawn
    assert counts["excluded_by"] == []
    model = build_model(molecule_network(1))
    take_weights(model, str(tmp_path / "run"))
    assert torch.equal(model.kernel.linear.weight, run.best_weights["kernel.linear.weight"])


def test_files_that_hold_no_molecules_are_refused(tmp_path):
    for name, text, sentence in (
        ("a.csv", "name\nCCO\n", "no column 'smiles'"),
        ("a.smi.gz", "CCO\n", "cannot be read"),
        ("b.smi", "", "0 molecules to train on"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=sentence):
            choose(Pretraining(tmp_path / name))
    with pytest.raises(InputError, match="no file"):
        list(smiles_of(tmp_path / "none.smi"))
    with pytest.raises(InputError, match="--molecules is 1"):
        choose(Pretraining(tmp_path / "b.smi", molecules=1))
