import pytest

from ckgconv.studies import Options
from ckgconv.studies.theory import degrees, random_graph, theory


@pytest.fixture(scope="module")
def report():
    return theory(Options(seeds=(0,)))


def differences(report, paper):
    return {row[0]: row[2] for row in report.rows if row[1] == paper}


def test_filters_and_set_networks_are_equal_up_to_rounding(report):
    equal = differences(report, "equal")
    assert len(equal) == 6
    assert max(equal.values()) < 1e-10


def test_layer_norm_erases_the_degree_and_batch_norm_keeps_it(report):
    assert max(differences(report, "erased").values()) < 1e-10
    assert min(differences(report, "kept").values()) > 0.1


def test_polynomials_approach_their_ideal_response(report):
    gaps = {row[0]: row[3] for row in report.rows if row[3] is not None}
    assert gaps["low-pass, cos²(πλ/4)"] < 1e-10
    assert gaps["heat, exp(-3λ)"] < 1e-6
    assert gaps["band-pass, exp(-8(λ-1)²)"] < 0.05
    assert gaps["personalised PageRank"] < 0.1


def test_graphs_are_connected_rings_of_different_degrees():
    degree = degrees(random_graph(3))
    assert degree.min() >= 2
    assert degree.unique().numel() > 2
    assert report_seeds() == (0, 1, 2, 3, 4)


def report_seeds():
    return theory(Options()).seeds
