"""Kernels of a small network on a few molecules."""

from dataclasses import replace

import pytest
import torch

from ckgconv import InputError, recipe, train
from ckgconv.studies import Options
from ckgconv.studies.kernels import kernels, kernels_of, layout


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=2, steps=3)
    training = replace(chosen.training, epochs=1, warmup_epochs=1)
    chosen = replace(chosen, model=model, data=replace(chosen.data, limit=6), training=training)
    return train(chosen, folder=tmp_path_factory.mktemp("kernels") / "run", device="cpu")


def test_report_names_the_share_of_negative_coefficients(run):
    report = kernels(Options(runs=(run.folder,)))
    assert [row[0] for row in report.rows] == ["1", "2"]
    assert all(0 <= row[1] <= 100 for row in report.rows)
    assert "both signs" in report.title
    assert report.figure.get_axes()


def test_kernels_are_those_of_the_network(run):
    data = run.learner.data.batch(run.learner.data.test[:1])
    shown = kernels_of(run.model, data)
    nodes = data.num_nodes
    assert shown.psi.shape == (2, nodes, nodes, 8)
    assert torch.equal(shown.adjacency, shown.adjacency.T)
    place = torch.from_numpy(layout(data))
    apart = torch.cdist(place, place)
    assert place.shape == (nodes, 2)
    assert (apart[~torch.eye(nodes, dtype=torch.bool)] > 0.5).all()
    assert ((apart[shown.adjacency > 0] > 0.5) & (apart[shown.adjacency > 0] < 1.5)).all()


def test_one_run_is_drawn(run):
    with pytest.raises(InputError, match="Several runs"):
        kernels(Options(runs=(run.folder, run.folder)))
