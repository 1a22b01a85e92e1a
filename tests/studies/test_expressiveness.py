from importlib import import_module

import numpy as np
import pytest
import torch

from ckgconv.data.expressiveness import brec, csl, csl_folds, neighbouring_pairs, sr25
from ckgconv.studies import Options, separation
from ckgconv.studies.processes import in_one_thread
from ckgconv.studies.random_network import Measured
from ckgconv.studies.separation import Family

# The package carries the function of that name.
study = import_module("ckgconv.studies.expressiveness")


@pytest.fixture(scope="module")
def report():
    """The study on a few pairs, with small networks."""
    hard = brec()
    few = hard.chosen([0, 1, 60, 61, 110, 160, 260, 360, 380])
    reduced = {
        "brec": lambda: few,
        "csl": lambda: csl().chosen([0, 1, 2]),
        "sr25": lambda: sr25().chosen([0, 1]),
        "csl_folds": lambda: csl_folds()[:1],
        "statistics_sample": lambda pairs: pairs.dataset.batch(torch.arange(0, 800, 60)),
        "exp_file": lambda folder: None,
        "WIDTHS": (4, 16),
        "STEPS_OF_CONTRAST": 3,
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in reduced.items():
            patch.setattr(study, name, value)
        patch.setattr(study, "in_one_thread", here)
        patch.setattr(separation, "in_one_thread", here)
        return study.expressiveness(Options(seeds=(0,), epochs=1))


def here(function, tasks):
    """In this process: others would not see what is patched."""
    return [function(*task) for task in tasks]


def test_parts_of_a_study_keep_their_order_and_run_in_one_thread():
    tasks = [(1,), (2,), (3,)]
    threads = torch.get_num_threads()
    assert in_one_thread(threads_and, tasks) == [(1, 1), (1, 2), (1, 3)]
    assert torch.get_num_threads() == threads


def threads_and(number):
    return torch.get_num_threads(), number


def test_a_trained_network_with_equal_outputs_is_trained_again(monkeypatch):
    pairs = sr25().chosen([0, 1, 2])
    family = Family(pairs, (4,), {"RRWP": np.array([False, True, True])})
    asked = []

    def contrast(pair, distance, steps, seed, sample):
        asked.append((int(pair.second[0]), seed))
        apart = seed == 1 or int(pair.second[0]) == int(pairs.second[2])
        return Measured(torch.tensor([1.0 if apart else 0.0]), 1e-15)

    monkeypatch.setattr(study, "contrast", contrast)
    monkeypatch.setattr(study, "in_one_thread", here)
    found = study.by_contrast(family, (0, 1), None)["SR25"]
    assert (found["separated"], found["beyond GD-WL"], found["missed"]) == (2, 0, 0)
    assert asked[3:] == [(int(pairs.second[1]), 1)]


def test_networks_and_gd_wl_agree_both_ways(report):
    assert report.title == "CKGCN separates exactly the pairs of graphs that its GD-WL test does"
    for row in report.rows:
        for gdwl, network in (row[3:5], row[5:7], row[7:9]):
            assert gdwl == network
    assert (
        "beyond GD-WL by any random network of any width: SPD 0, RD 0, RRWP 0; by trained ones: 0." in report.notes[0]
    )


def test_the_table_has_a_row_per_group_and_a_sum(report):
    assert [row[0] for row in report.rows[:3]] == ["CSL", "SR25", "BREC basic"]
    assert report.rows[-1][:3] == ("**BREC, all**", 9, 0)
    assert all(len(row) == len(report.columns) for row in report.rows)
    assert [row[-1] for row in report.rows[1:3]] == [0, 2]
    assert "EXP is missing" in report.notes[-1]


def test_the_page_keeps_every_count_and_margin(report):
    kept = report.values["families"]["BREC basic"]
    assert kept["counts"]["BREC basic"]["CKGCN"]["RRWP, width 16"] == [2]
    margins = kept["margins"]["RRWP, width 16"][0]
    assert margins["largest where GD-WL sees none"] < 100 * margins["noise"] < margins["smallest where GD-WL sees one"]
    assert len(report.values["trained"]["CSL"]["SPD"]) == 1


def test_a_network_beyond_its_bound_would_be_the_title():
    pairs = sr25().chosen([0, 1])
    family = Family(pairs, (4,))
    for name in ("1-WL", "SPD", "RD", "RRWP"):
        family.oracle[name] = np.array([False, True])
    for name in ("SPD", "RD", "RRWP"):
        family.networks[name, 4] = [Measured(torch.tensor([1.0, 0.0]), 1e-15)]
    assert study.finding([family], {"CSL": {"RRWP": [100.0]}, "SR25": {"beyond GD-WL": 1}}) == (
        "CKGCN separates 4 pairs of graphs beyond its GD-WL test and misses 3 of those it allows"
    )


def test_exp_is_classified_with_its_node_types(monkeypatch):
    monkeypatch.setattr(study, "csl_folds", lambda: ())
    monkeypatch.setattr(study, "in_one_thread", here)
    path, triangle = [[0, 1, 1, 2], [1, 0, 2, 1]], [[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]]
    arrays = {
        "num_nodes": torch.full((20,), 3),
        "num_edges": torch.tensor([4, 6] * 10),
        "edge_index": torch.cat([torch.tensor(path), torch.tensor(triangle)], dim=1).repeat(1, 10),
        "y": torch.tensor([1, 0] * 10),
    }
    found = study.by_class(neighbouring_pairs(arrays, ["EXP"] * 10), 5, 0)
    assert found["EXP"]["RRWP"] == [100]
