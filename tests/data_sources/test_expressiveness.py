from collections import Counter

import numpy as np
import pytest
import torch

from ckgconv import InputError
from ckgconv.data.expressiveness import BREC_GROUPS, brec, csl, csl_folds, exp, exp_file, sr25
from ckgconv.data.packed import from_arrays, save_packed


def test_brec_has_400_pairs_of_equal_size_in_seven_groups():
    pairs = brec()
    assert [Counter(pairs.group)[group] for group in BREC_GROUPS] == [60, 50, 50, 100, 100, 20, 20]
    sizes = pairs.dataset.node_ptr.diff()
    assert torch.equal(sizes[pairs.first], sizes[pairs.second])
    assert (int(sizes.min()), int(sizes.max())) == (7, 198)


def test_sr25_is_strongly_regular():
    pairs = sr25()
    assert len(pairs) == 105
    for graph in range(15):
        edge_index = pairs.dataset.batch(torch.tensor([graph])).edge_index
        adjacency = torch.zeros(25, 25, dtype=torch.int64)
        adjacency[edge_index[0], edge_index[1]] = 1
        eye = torch.eye(25, dtype=torch.int64)
        assert torch.equal(adjacency @ adjacency, 12 * eye + 5 * adjacency + 6 * (1 - eye - adjacency))


def test_csl_compares_classes_and_its_folds_are_stratified():
    pairs = csl()
    assert len(pairs) == 45
    assert pairs.dataset.y[torch.cat([pairs.first, pairs.second])].unique().numel() == 10
    folds = csl_folds()
    assert len(folds) == 5
    for fold in folds:
        assert [len(fold.split(name)) for name in ("train", "val", "test")] == [90, 30, 30]
        assert torch.bincount(fold.y[fold.test].long()).tolist() == [3] * 10
    assert torch.cat([fold.test for fold in folds]).unique().numel() == 150


def test_exp_is_read_from_the_data_folder(tmp_path):
    assert exp_file(tmp_path) is None
    with pytest.raises(InputError, match=r"There is no exp\.npz in the data folder"):
        exp(tmp_path)
    two = {"num_nodes": [2, 2], "num_edges": [2, 0], "edge_index": [[0, 1], [1, 0]], "x": [[0], [1], [1], [1]]}
    arrays = {name: torch.from_numpy(np.array(values)) for name, values in two.items()}
    (tmp_path / "expressiveness").mkdir()
    save_packed(from_arrays({**arrays, "y": torch.tensor([1, 0])}), tmp_path / "expressiveness" / "exp.npz")
    pairs = exp(tmp_path)
    assert (pairs.first.tolist(), pairs.second.tolist(), pairs.group) == ([0], [1], ("EXP",))
    assert pairs.dataset.x.flatten().tolist() == [0, 1, 1, 1]
