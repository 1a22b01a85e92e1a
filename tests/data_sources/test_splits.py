"""Splits of tables. Covers `ckgconv.data.splits`, `ckgconv.data.table_split` and `ckgconv.data.clusters`."""

import pytest
import torch
from rdkit import Chem
from rdkit.Chem.rdFingerprintGenerator import GetMorganGenerator
from rdkit.DataStructs import BulkTanimotoSimilarity
from rdkit.ML.Cluster import Butina

from ckgconv import InputError
from ckgconv.data import clusters, load
from ckgconv.data.molecule_table import loaded_table
from ckgconv.data.splits import check_sizes, grouped_split, random_split, stratified_split
from ckgconv.recipe import DataRecipe

SMILES = [chain + end for chain in ("C", "CC", "CCC", "CCCC", "c1ccccc1", "C1CC1") for end in "ONFSIP"]


def table(path):
    lines = ["smiles,y,t,split,g"]
    lines += [
        f"{each},{row}.5,{int(row % 4 == 0)},{('train', 'Valid', 'test')[row % 3]},g{row % 7}"
        for row, each in enumerate(SMILES)
    ]
    lines += ["OC,1.5,1,,g6", "CO,9,0,train,"]  # the molecule of the first row, in another group; in none
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def splits_of(recipe):
    """By split, the lines of the table."""
    loaded = loaded_table(recipe)
    names = ("train", "val", "test")
    return {
        name: {loaded.table.lines[loaded.rows[graph]] for graph in loaded.dataset.split(name).tolist()}
        for name in names
    }


def test_sizes_of_a_random_split():
    assert [len(rows) for rows in random_split(50, 0, (0.5, 0.3, 0.2)).values()] == [25, 15, 10]
    assert [len(rows) for rows in random_split(50, 0, (0.9, 0.1, 0.0)).values()] == [45, 5, 0]
    assert [len(rows) for rows in random_split(35, 0).values()] == [28, 3, 4]
    for sizes, words in (
        ((0.8, 0.2), "give three"),
        ((0.8, 0.1, 0.2), "add up to 1.1"),
        ((1.0, 0.0, 0.0), "need some"),
    ):
        with pytest.raises(InputError, match=words):
            check_sizes(sizes)


def test_stratified_splits_have_the_shares_of_the_classes():
    classes = ["a"] * 80 + ["b"] * 20
    split = stratified_split(classes, 1)
    assert [len(rows) for rows in split.values()] == [80, 10, 10]
    assert [sum(classes[row] == "b" for row in rows) for rows in split.values()] == [16, 2, 2]
    assert not torch.equal(split["train"], stratified_split(classes, 2)["train"])


def test_no_group_is_divided_and_a_seed_changes_their_order():
    groups = [row // 4 for row in range(80)]
    found = [grouped_split(groups, "group", seed=seed) for seed in (0, 1)]
    for split in found:
        assert [len(rows) for rows in split.values()] == [64, 8, 8]
        owners = [{groups[row] for row in rows.tolist()} for rows in split.values()]
        assert sum(len(each) for each in owners) == len(set.union(*owners))
    assert not torch.equal(found[0]["test"], found[1]["test"])
    with pytest.raises(InputError, match="leaves no molecule for 'train'"):
        grouped_split([0] * 20, "group", seed=0)


def test_clusters_are_those_of_rdkit():
    generator = GetMorganGenerator(radius=2, fpSize=2048)
    prints = [generator.GetFingerprint(Chem.MolFromSmiles(each)) for each in SMILES]
    distances = [
        1 - other for row in range(1, len(prints)) for other in BulkTanimotoSimilarity(prints[row], prints[:row])
    ]
    expected = Butina.ClusterData(distances, len(prints), 0.6, isDistData=True)
    found = clusters.butina_clusters(SMILES, 0.6)
    sizes = sorted(len(each) for each in expected)
    assert sorted(found.count(number) for number in set(found)) == sizes
    assert 1 < len(sizes) < len(SMILES)


def test_too_many_molecules_for_clusters_are_refused(monkeypatch):
    monkeypatch.setattr(clusters, "MOST_MOLECULES", 5)
    with pytest.raises(InputError, match="36 molecules, and the Butina split compares all pairs of at most 5"):
        clusters.butina_clusters(SMILES, 0.4)


def test_a_column_names_the_splits(tmp_path):
    recipe = DataRecipe(table(tmp_path / "t.csv"), targets=("y",), split="column", split_column="split")
    found = splits_of(recipe)
    assert [len(rows) for rows in found.values()] == [13, 12, 12]
    assert 38 not in set.union(*found.values())  # its cell is empty
    (tmp_path / "t.csv").write_text("smiles,y,split\nC,1,train\nCC,2,vall\n")
    with pytest.raises(InputError, match=r"Line 3 .* 'vall' in column 'split': give train, val or test"):
        load(recipe)
    (tmp_path / "t.csv").write_text("smiles,y,split\nC,1,train\nCC,2,test\n")
    with pytest.raises(InputError, match="names no usable row for 'val'"):
        load(recipe)


@pytest.mark.parametrize("split", ["random_with_repeated_smiles", "scaffold_balanced", "butina", "group"])
def test_rows_of_one_molecule_are_in_one_split(tmp_path, split):
    recipe = DataRecipe(table(tmp_path / "t.csv"), targets=("y",), split=split, group_column="g", split_seed=3)
    for found in (splits_of(recipe), splits_of(DataRecipe(**{**vars(recipe), "folds": 3, "fold": 1}))):
        assert set.union(*found.values()) == set(range(2, 40))
        assert len([name for name, lines in found.items() if lines & {2, 38, 39}]) == 1


def test_folds_of_scaffolds_and_what_has_no_folds(tmp_path):
    path = table(tmp_path / "t.csv")
    tests = [
        splits_of(DataRecipe(path, targets=("y",), split="scaffold", folds=3, fold=fold))["test"] for fold in range(3)
    ]
    assert set.union(*tests) == set(range(2, 40))
    with pytest.raises(InputError, match="3 groups for 5 folds"):
        load(DataRecipe(path, targets=("y",), split="scaffold", folds=5))
    with pytest.raises(InputError, match="but folds are drawn"):
        load(DataRecipe(path, targets=("y",), split="column", split_column="split", folds=3))
    with pytest.raises(InputError, match="are values without classes"):
        load(DataRecipe(path, targets=("y",), split="stratified"))
    assert (
        load(DataRecipe(path, targets=("t",), split="stratified"))
        .y[load(DataRecipe(path, targets=("t",), split="stratified")).test]
        .sum()
        == 1
    )
