import numpy as np
import pytest
import torch

from ckgconv.data.expressiveness import BREC_GROUPS, brec, csl, sr25
from ckgconv.studies.oracle import DISTANCES, gdwl_separates
from ckgconv.studies.random_network import measure, parts, random_network, relabel
from ckgconv.studies.separation import NETWORKS, statistics_sample


@pytest.fixture(scope="module")
def hard():
    return brec()


@pytest.fixture(scope="module")
def few(hard):
    """Three pairs of each group."""
    groups = np.array(hard.group)
    return hard.chosen([q for name in BREC_GROUPS for q in (groups == name).nonzero()[0][:3].tolist()])


@pytest.mark.parametrize("distance", NETWORKS)
def test_separates_what_gd_wl_does_and_nothing_else(hard, few, distance):
    networks = [random_network(distance, 16, seed, statistics_sample(hard)) for seed in (0, 1)]
    for pairs in (few, csl(), sr25()):
        found = np.any([measure(network, pairs).separated for network in networks], axis=0)
        assert np.array_equal(found, gdwl_separates(pairs, DISTANCES[distance]))


def test_noise_is_rounding_and_what_gd_wl_cannot_see_stays_inside_it(hard):
    run = measure(random_network("RRWP", 8, 1, statistics_sample(hard)), sr25())
    assert 0 < run.noise < 1e-12
    assert float(run.difference.max()) < 10 * run.noise


def test_a_graph_does_not_see_the_others_of_its_batch(hard):
    network = random_network("RRWP", 8, 0, statistics_sample(hard))
    alone = network(hard.dataset.batch(torch.tensor([0])))
    together = network(hard.dataset.batch(torch.tensor([0, 120, 121])))
    torch.testing.assert_close(together[:1], alone, rtol=1e-12, atol=0)


def test_relabelled_graphs_are_the_same_graphs(few):
    data = few.dataset.batch(few.first)
    moved = relabel(data, torch.Generator().manual_seed(0))
    assert not torch.equal(moved.edge_index, data.edge_index)
    assert torch.equal(moved.batch[moved.edge_index[0]], moved.batch[moved.edge_index[1]])
    for graph in range(len(few)):
        degrees = [torch.bincount(each.edge_index[0])[each.batch == graph].sort().values for each in (data, moved)]
        assert torch.equal(*degrees)


def test_parts_hold_every_graph_once(hard):
    graphs = torch.arange(100)
    assert torch.equal(torch.cat(parts(hard.dataset, graphs)), graphs)
    assert len(parts(hard.dataset, graphs)) > 1
