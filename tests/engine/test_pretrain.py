"""Pretraining: what is kept of it, and that a run can begin with the result."""

import json

import torch

from ckgconv.engine.describe import Selection, describe
from ckgconv.engine.initial_weights import take_weights
from ckgconv.engine.pretrain import Pretraining, pretrain
from ckgconv.engine.watcher import Silence
from ckgconv.nn.models import build_model
from ckgconv.recipes.pretraining import molecule_network


def test_a_run_begins_with_the_pretrained_network(tmp_path):
    source = tmp_path / "all.smi"
    source.write_text("CCO\nc1ccccc1\nCC(=O)O\nCCN\nCCCl\n")
    molecules = describe(Selection(source, molecules=4))
    run = pretrain(molecules, Pretraining(epochs=1, device="cpu"), tmp_path / "run", Silence())
    counts = json.loads((tmp_path / "run" / "molecules.json").read_text())
    assert counts["used"] == 4
    assert counts["drawn"] == molecules.origin.counts.drawn
    assert counts["excluded_by"] == []
    model = build_model(molecule_network(1))
    take_weights(model, str(tmp_path / "run"))
    assert torch.equal(model.kernel.linear.weight, run.best_weights["kernel.linear.weight"])


def test_a_network_that_has_learned_environments_begins_a_run_too(tmp_path):
    source = tmp_path / "all.smi"
    source.write_text("CCO\nc1ccccc1\nCC(=O)O\nCCN\nCCCl\n")
    molecules = describe(Selection(source, molecules=4, properties="environments"))
    run = pretrain(molecules, Pretraining(epochs=1, device="cpu"), tmp_path / "run", Silence())
    assert run.recipe.data.targets[:2] == ("environment0", "environment1")
    take_weights(build_model(molecule_network(1)), str(tmp_path / "run"))
