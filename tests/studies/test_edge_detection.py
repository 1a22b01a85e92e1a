import math

import pytest
import torch

from ckgconv.studies import Options
from ckgconv.studies.edge_detection import edge_detection, ladder_edges


@pytest.fixture(scope="module")
def values():
    return edge_detection(Options(seeds=(0,), epochs=60)).values


def accuracies(values, setting, name):
    return [run["accuracy"] for run in values[setting][name]]


def test_kernels_that_sum_to_one_do_not_find_the_border_of_the_ladder(values):
    assert accuracies(values, "2×4 ladder", "CKGConv") == [100]
    assert accuracies(values, "2×4 ladder", "CKGConv + softmax") == [50]
    assert accuracies(values, "2×4 ladder", "GCNConv") == [50]


def test_on_the_8_cycle_no_linear_reading_beats_ln_2(values):
    for runs in values["8-cycle"].values():
        assert all(run["loss"] >= math.log(2) - 1e-6 for run in runs)


def test_energy_of_the_response_finds_the_border_of_the_8_cycle(values):
    for name in values["8-cycle, energy y²"]:
        reached = accuracies(values, "8-cycle, energy y²", name)
        assert reached == [100] if name == "CKGConv" else max(reached) <= 75


def test_border_nodes_of_the_ladder_have_degree_3():
    assert torch.bincount(ladder_edges()[0]).tolist() == [2, 3, 3, 2, 2, 3, 3, 2]


def test_epochs_are_read_and_the_paper_is_next_to_the_graph_it_used():
    report = edge_detection(Options(seeds=(1,), epochs=2))
    assert report.values["2×4 ladder"]["CKGConv"][0]["loss"] > 0.5
    assert [row[4] for row in report.rows] == ["100 ± 0", "50 ± 0", "50 ± 0", "60 ± 12.25", *[None] * 8]
