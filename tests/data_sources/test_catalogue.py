"""The paper's table of statistics, and where data sets are found."""

import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ckgconv import InputError
from ckgconv.cli.data import statistics
from ckgconv.data import CATALOGUE, build, find, load, official, sbm
from ckgconv.recipe import DataRecipe

# Graphs, average nodes and average edges as the paper prints them; directed edges per printed edge.
PAPER = {
    "zinc": (12_000, 23.2, 24.9, 2),
    "mnist": (70_000, 70.6, 564.5, 1),
    "cifar10": (60_000, 117.6, 941.1, 1),
    "peptides-func": (15_535, 150.9, 307.3, 1),
}
FOLDERS = [Path(os.environ.get("CKGCONV_DATA", "data")), Path(__file__).parents[3] / "shared" / "data"]
FOUND = [(name, folder) for name in PAPER for folder in FOLDERS if (folder / CATALOGUE[name].file).exists()]
FOUND = [("zinc", Path("nowhere")), *FOUND]


@pytest.mark.parametrize(("name", "folder"), FOUND)
def test_counts_of_the_paper(name, folder):
    graphs, nodes, edges, directions = PAPER[name]
    with np.load(find(name, folder), allow_pickle=False) as archive:
        assert len(archive["num_nodes"]) == graphs
        assert archive["num_nodes"].mean() == pytest.approx(nodes, abs=0.05)
        assert archive["num_edges"].mean() / directions == pytest.approx(edges, abs=0.06)


@pytest.mark.parametrize(("name", "folder"), [case for case in FOUND if case[0] != "zinc"])
def test_packed_benchmarks_load_with_a_limit(name, folder):
    data = load(DataRecipe(name, limit=4), folder)
    assert data.num_graphs == 12
    batch = data.batch(data.test)
    assert torch.isfinite(batch.x.float()).all()
    if name in ("mnist", "cifar10"):
        assert batch.x.max() <= 1
        assert batch.edge_index.shape[1] == 8 * batch.num_nodes


@pytest.mark.parametrize(
    ("draw", "graphs", "nodes", "edges"),
    [(sbm.cluster, 12_000, 117.2, 2_150.9), (sbm.pattern, 14_000, 118.9, 3_039.3)],
)
def test_generated_benchmarks_have_the_published_size(draw, graphs, nodes, edges):
    counts = statistics(draw(0))
    assert counts["graphs"] == graphs
    # PATTERN draws only 100 pattern sizes, so its averages vary between seeds: by 0.9 nodes and 3 % of edges.
    assert counts["average_nodes"] == pytest.approx(nodes, rel=0.03)
    assert counts["average_directed_edges"] / 2 == pytest.approx(edges, rel=0.06)


def test_generate_build_and_find(tmp_path, monkeypatch):
    monkeypatch.setitem(
        CATALOGUE._entries,
        "cluster",
        CATALOGUE["cluster"].__class__("cluster.npz", "task", generate=lambda seed: sbm.cluster(seed, (4, 2, 2))),
    )
    assert find("cluster", tmp_path) is None
    path = build("cluster", tmp_path, seed=1)
    assert path == find("cluster", tmp_path) == tmp_path / "cluster.npz"
    assert load(DataRecipe("cluster"), tmp_path).num_graphs == 8
    monkeypatch.setenv("CKGCONV_DATA", str(tmp_path))
    assert load(DataRecipe("cluster", limit=1)).num_graphs == 3


def test_the_large_graph_is_drawn_where_its_file_is_missing(tmp_path):
    drawn = load(DataRecipe("large-sbm"), tmp_path)
    assert not any(tmp_path.iterdir())
    assert find("large-sbm", build("large-sbm", tmp_path).parent) == tmp_path / "large_sbm.npz"
    stored = load(DataRecipe("large-sbm", limit=1), tmp_path)
    ours, theirs = drawn.batch(drawn.train).to_dict(), stored.batch(stored.train).to_dict()
    assert ours.pop("num_graphs") == theirs.pop("num_graphs") == 1
    for one, other in zip(ours.values(), theirs.values(), strict=True):
        assert torch.equal(one, other)
    build("large-sbm", tmp_path, seed=1)
    assert not torch.equal(load(DataRecipe("large-sbm"), tmp_path).node_split, drawn.node_split)


def test_without_a_connection_the_error_says_what_to_do(tmp_path, monkeypatch):
    for name in ("cluster", "mnist"):
        archives = (replace(official.OFFICIAL[name].archives[0], url="http://127.0.0.1:9/nothing"),)
        monkeypatch.setitem(official.OFFICIAL, name, replace(official.OFFICIAL[name], archives=archives))
    with pytest.raises(InputError, match=r"could not be downloaded.*ckgconv data build cluster --generate"):
        load(DataRecipe("cluster"), tmp_path)
    with pytest.raises(InputError, match="put its packed file into the data folder"):
        load(DataRecipe("mnist"), tmp_path)


def test_refusals(tmp_path):
    with pytest.raises(InputError, match=r"did you mean zinc\?"):
        load(DataRecipe("zink"))
    with pytest.raises(InputError, match="choose one of"):
        load(DataRecipe("quantum"))
    with pytest.raises(InputError, match="nothing to build"):
        build("zinc", tmp_path)
    with pytest.raises(InputError, match="not a synthetic"):
        build("mnist", tmp_path, seed=0)
    with pytest.raises(InputError, match="no data set 'zebra'"):
        build("zebra", tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        load(DataRecipe("absent.csv"))


@pytest.mark.parametrize(
    ("name", "nodes", "edges", "columns", "classes", "rows"),
    [
        ("cora", 2_708, 10_556, 1_433, 7, [140, 500, 1_000]),
        ("minesweeper", 10_000, 2 * 39_402, 7, 2, [5_000, 2_500, 2_500]),
        ("chameleon-directed", 890, 13_584, 2_325, 5, [409, 287, 194]),
    ],
)
def test_single_graphs_are_part_of_the_package(tmp_path, name, nodes, edges, columns, classes, rows):
    data = load(DataRecipe(name), tmp_path)
    batch = data.batch(torch.arange(1))
    assert batch.x.shape == (nodes, columns)
    assert batch.x.dtype == torch.float32
    assert batch.edge_index.shape == (2, edges)
    assert batch.y.unique().tolist() == list(range(classes))
    assert [len(data.target_rows(split)) for split in ("train", "val", "test")] == rows
    with pytest.raises(InputError, match=f"{name} is part of the package"):
        build(name, tmp_path)


def test_one_of_several_splits_is_chosen(tmp_path):
    splits = [load(DataRecipe("minesweeper", split_number=number), tmp_path).node_split for number in (0, 9)]
    assert not torch.equal(*splits)
    with pytest.raises(InputError, match=r"data.split_number is 10, but .* has splits 0 … 9 only"):
        load(DataRecipe("minesweeper", split_number=10), tmp_path)
    with pytest.raises(InputError, match="has splits 0 … 0 only"):
        load(DataRecipe("cora", split_number=1), tmp_path)
