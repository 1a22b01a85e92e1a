import numpy as np
import pytest
import torch
from graphs_for_tests import edge_lists, packed
from hypothesis import given, settings
from hypothesis import strategies as st

from ckgconv.pe import rd, rrwp, spd
from ckgconv.theory import indicator_colours, refine_colours

pytestmark = pytest.mark.usefixtures("double")

DISTANCES = {
    "spd": lambda graphs: spd(graphs, 20),
    "rd": rd,
    "rrwp": lambda graphs: rrwp(graphs, 6),
}


def same_partition(one, other):
    pairs = set(zip(one.tolist(), other.tolist(), strict=True))
    return len(pairs) == len(set(one.tolist())) == len(set(other.tolist()))


def undirected(graph):
    nodes, index = graph
    return nodes, torch.cat([index, index.flip(0)], dim=1)


@pytest.mark.parametrize("name", DISTANCES)
@given(st.lists(edge_lists(7), min_size=2, max_size=4))
@settings(max_examples=15)
def test_indicator_kernels_colour_like_the_oracle_round_by_round(name, drawn):
    graphs = packed(*(undirected(graph) for graph in drawn))
    distance = DISTANCES[name](graphs)
    for rounds in range(4):
        oracle, ours = refine_colours(graphs, distance, rounds), indicator_colours(graphs, distance, rounds)
        assert same_partition(oracle, ours)


def ring(nodes, *skips):
    start = torch.arange(nodes)
    index = torch.cat([torch.stack([start, (start + skip) % nodes]) for skip in (1, *skips)], dim=1)
    return nodes, torch.cat([index, index.flip(0)], dim=1)


def histogram(graphs, colours, graph):
    return sorted(colours[(graphs.node_graph == graph).numpy()].tolist())


@pytest.mark.parametrize("name", DISTANCES)
def test_separates_two_triangles_from_a_hexagon_which_1_wl_cannot(name):
    triangle = ring(3)[1]
    graphs = packed(ring(6), (6, torch.cat([triangle, triangle + 3], dim=1)))
    for colours in (
        refine_colours(graphs, DISTANCES[name](graphs)),
        indicator_colours(graphs, DISTANCES[name](graphs), 2),
    ):
        assert histogram(graphs, colours, 0) != histogram(graphs, colours, 1)


def test_circular_skip_links_as_recorded():
    """Skips 6 and 16 fall together under SPD and separate under RD and RRWP."""
    graphs = packed(ring(41, 6), ring(41, 16))
    together = refine_colours(graphs, spd(graphs, 40))
    assert histogram(graphs, together, 0) == histogram(graphs, together, 1)
    for distance in (rd(graphs), rrwp(graphs, 20)):
        apart = refine_colours(graphs, distance)
        assert histogram(graphs, apart, 0) != histogram(graphs, apart, 1)


def test_refinement_stops_when_stable():
    graphs = packed(ring(5))
    assert np.array_equal(refine_colours(graphs, spd(graphs, 5)), np.zeros(5))
