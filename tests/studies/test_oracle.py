import numpy as np
import pytest

from ckgconv.data.expressiveness import BREC_GROUPS, brec, csl, sr25
from ckgconv.studies.oracle import DISTANCES, classes, gdwl_separates


@pytest.mark.parametrize(("name", "expected"), [("1-WL", 1), ("SPD", 9), ("RD", 10), ("RRWP", 10)])
def test_classes_of_circular_skip_links_as_on_record(name, expected):
    pairs = csl()
    assert classes(pairs, gdwl_separates(pairs, DISTANCES[name])) == expected


@pytest.mark.parametrize("name", DISTANCES)
def test_no_distance_separates_strongly_regular_graphs_of_equal_parameters(name):
    pairs = sr25()
    separated = gdwl_separates(pairs, DISTANCES[name])
    assert not separated.any()
    assert classes(pairs, separated) == 1


# Counts of two independent programs over the whole set.
ON_RECORD = {
    "1-WL": [0, 0, 0, 0, 0, 0, 0],
    "SPD": [16, 14, 0, 41, 12, 0, 0],
    "RD": [60, 50, 0, 100, 26, 0, 0],
    "RRWP": [60, 50, 0, 100, 26, 0, 0],
}


@pytest.mark.parametrize("name", DISTANCES)
def test_counts_of_brec_as_on_record(name):
    pairs = brec()
    separated, groups = gdwl_separates(pairs, DISTANCES[name]), np.array(pairs.group)
    assert [int(separated[groups == group].sum()) for group in BREC_GROUPS] == ON_RECORD[name]
