"""Folds of graphs: each graph is tested once, classes keep their shares, mistakes are refused."""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import InputError, recipe
from ckgconv.data import load, save_packed
from ckgconv.data.folds import divide, folded, strata
from ckgconv.recipe import DataRecipe


def classes(graphs=40, shares=(0.7, 0.2, 0.1)):
    data = small_dataset(recipe("mnist"), graphs)
    y = torch.repeat_interleave(torch.arange(len(shares)), (torch.tensor(shares) * graphs).round().long())
    return replace(data, y=y[torch.randperm(graphs)])


def test_each_graph_is_tested_once_and_validates_once():
    data = classes()
    parts = [folded(data, DataRecipe("mine", folds=5, fold=fold)) for fold in range(5)]
    for split in ("test", "val"):
        assert torch.equal(torch.cat([part.split(split) for part in parts]).sort().values, torch.arange(40))
    for number, part in enumerate(parts):
        assert torch.equal(torch.cat([part.train, part.val, part.test]).sort().values, torch.arange(40))
        assert torch.equal(part.val, parts[(number + 1) % 5].test)


def test_every_fold_has_the_same_share_of_each_class():
    data = classes()
    for part in divide(data, 4, seed=3):
        assert torch.bincount(data.y[part]).tolist() == [7, 2, 1]


def test_the_seed_draws_the_folds():
    data = classes()
    one, same, other = (divide(data, 5, seed) for seed in (0, 0, 1))
    assert all(torch.equal(*pair) for pair in zip(one, same, strict=True))
    assert not all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_strata_are_classes_or_one_label():
    data = classes()
    assert torch.equal(strata(data), data.y)
    label = (data.y.view(-1, 1) > 0).float()
    label[3] = torch.nan
    wanted = (data.y > 0).long()
    wanted[3] = -1
    assert torch.equal(strata(replace(data, y=label)), wanted)
    for y in (torch.randn(40), torch.randint(2, (40, 2)), None):
        assert strata(replace(data, y=y)) is None


def test_values_and_rare_classes_are_divided_at_random():
    data = classes()
    for y in (torch.randn(40, 1), torch.arange(40)):
        sizes = [len(part) for part in divide(replace(data, y=y), 6, seed=0)]
        assert sorted(sizes) == [6, 6, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"folds": 2}, "data.folds is 2: give at least 3"),
        ({"folds": 5, "fold": 5}, "data.fold is 5: give a number from 0 to 4"),
        ({"folds": 41}, "has 40 graphs for 41 folds"),
        ({"folds": 5, "split": "scaffold"}, "its folds are drawn at random"),
    ],
)
def test_mistakes_are_refused(change, sentence):
    with pytest.raises(InputError, match=sentence):
        folded(classes(), replace(DataRecipe("mine"), **change))


def test_nodes_are_not_folded():
    with pytest.raises(InputError, match="folds divide graphs"):
        load(DataRecipe("large-sbm", folds=5))


def test_a_packed_file_is_folded_as_it_is_read(tmp_path):
    data = classes()
    save_packed(data, tmp_path / "mine.npz")
    read = load(DataRecipe(str(tmp_path / "mine.npz"), folds=5, fold=2))
    assert torch.equal(read.test, divide(data, 5, seed=0)[2])
