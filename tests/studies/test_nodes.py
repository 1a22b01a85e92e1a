"""The study of nodes; covers `ckgconv.studies.baselines`."""

import pytest
import torch

from ckgconv.data import load
from ckgconv.recipe import DataRecipe
from ckgconv.recipes import recipe
from ckgconv.studies import Options
from ckgconv.studies.baselines import LAYERS, Setting, fit_baseline
from ckgconv.studies.nodes import IGNORED, OURS, PROBLEMS, described, networks, nodes, undirected


@pytest.fixture(scope="module")
def report():
    return nodes(Options(seeds=(0, 1), epochs=2, data="cora", device="cpu"))


def test_ours_and_the_baselines_share_splits_and_seeds(report):
    assert [row[:2] for row in report.rows] == [("cora", name) for name in (OURS, *LAYERS)]
    assert report.seeds == (0, 1)
    assert all(len(runs) == 2 for runs in report.values["cora"].values())
    assert all(len(row) == len(report.columns) for row in report.rows)
    assert report.title.startswith("Test metric of ours: cora 0.")
    assert "2 layers of width 64" in report.notes[0]


def test_only_a_directed_graph_is_also_read_without_directions():
    assert [name for name in PROBLEMS if IGNORED in networks(name)] == ["chameleon-directed", "cyclic-sbm"]
    data = load(DataRecipe("chameleon-directed"))
    batch = undirected(data).batch(torch.arange(1))
    found = {tuple(edge) for edge in batch.edge_index.T.tolist()}
    given = {tuple(edge) for edge in data.edge_index.long().T.tolist()}
    assert found == given | {(j, i) for i, j in given}
    assert batch.num_edges == len(found)


@pytest.mark.parametrize("residual", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_every_baseline_learns(name, residual):
    setting = Setting(2, 16, residual, 0.2, 1e-2, 5e-4, 40)
    fitted = fit_baseline(name, setting, load(DataRecipe("cora")), recipe("nodes-homophilous"), 0)
    assert fitted.val > 0.35
    assert fitted.test > 0.35
    assert 0 < fitted.epoch < 40
    assert ("residual" in described(setting)) == residual
