from dataclasses import replace

import torch

from ckgconv.data.expressiveness import brec, csl_folds, neighbouring_pairs
from ckgconv.studies.separation import statistics_sample
from ckgconv.studies.trained_network import classifier_recipe, contrast, exp_split, trained_accuracy


def test_contrast_separates_a_pair_that_gd_wl_separates_and_no_other():
    pairs = brec()
    sample = statistics_sample(pairs)
    basic, strongly_regular = (contrast(pairs.chosen([q]), "RRWP", 10, 0, sample) for q in (0, 110))
    assert basic.separated.tolist() == [True]
    assert strongly_regular.separated.tolist() == [False]


def test_two_classes_of_skip_links_are_learned():
    data = csl_folds()[0]
    two = replace(data, train=data.train[data.y[data.train] < 2], test=data.test[data.y[data.test] < 2])
    assert trained_accuracy(classifier_recipe("RRWP", 2), two, 10, 0) == 100


def test_the_split_of_exp_keeps_pairs_together():
    arrays = {
        "num_nodes": torch.ones(20, dtype=torch.int64),
        "num_edges": torch.zeros(20, dtype=torch.int64),
        "edge_index": torch.zeros(2, 0, dtype=torch.int64),
    }
    data = exp_split(neighbouring_pairs(arrays, ["EXP"] * 10), 0)
    train, test = (set((part // 2).tolist()) for part in (data.train, data.test))
    assert (len(data.train), len(data.test)) == (16, 4)
    assert train | test == set(range(10))
    assert not train & test
    assert classifier_recipe("SPD", 2, node_types=2).node.sizes == (2,)
