"""The official sources, served from this machine: what is read, what is refused, and that nothing runs."""

import gzip
import pickle

import numpy as np
import official_archives as made
import pytest
import torch

from ckgconv import InputError
from ckgconv.data import build, data_folder, load, load_packed
from ckgconv.data.archives import SEEN, Archive, fetch, gunzip, member
from ckgconv.data.molecules import read_smiles
from ckgconv.data.official import OFFICIAL
from ckgconv.data.tu import read_tu
from ckgconv.recipe import DataRecipe


@pytest.fixture
def serve(monkeypatch):
    """Puts the source of a data set on a server of this machine."""
    stack = []

    def start(name, files, graphs=None):
        server = made.serving(files)
        monkeypatch.setitem(OFFICIAL, name, made.local(name, server.__enter__(), files, graphs))
        stack.append(server)

    yield start
    for server in stack:
        server.__exit__(None, None, None)


@pytest.mark.parametrize("zip_form", [True, False])
@pytest.mark.parametrize(("name", "nodes"), [("mnist", False), ("cluster", True)])
def test_benchmarks_of_tensors(tmp_path, serve, name, nodes, zip_form):
    splits = [made.rings(range(9, 12), nodes, not nodes), made.rings(range(12, 14), nodes, not nodes)]
    splits.append(made.rings(range(14, 16), nodes, not nodes))
    serve(name, made.benchmark(name.upper(), splits, zip_form))
    data = load(DataRecipe(name), tmp_path)
    for split, graphs in zip(made.SPLITS, splits, strict=True):
        assert len(data.split(split)) == len(graphs)
        for number, graph in zip(data.split(split), graphs, strict=True):
            batch = data.batch(number.view(1))
            assert torch.equal(batch.x, graph["x"])
            assert torch.equal(batch.edge_index, graph["edge_index"])
            assert torch.equal(batch.edge_attr.squeeze(-1), graph["edge_attr"])
            assert torch.equal(batch.y, graph["y"])
    # What was downloaded is gone; the packed file and the digest of the first download are kept.
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([build_name(name), SEEN])


def build_name(name):
    return {"mnist": "mnist_superpixels.npz", "cluster": "cluster.npz"}[name]


def test_zinc_full(tmp_path, serve):
    sizes = {"train": range(3, 6), "val": range(6, 8), "test": range(8, 10)}
    molecules = {split: [made.zinc_molecule(size) for size in sizes[split]] for split in made.SPLITS}
    serve("zinc-full", made.zinc(molecules))
    data = load(DataRecipe("zinc-full"), tmp_path)
    batch = data.batch(data.val[:1])
    assert batch.x.flatten().tolist() == [0, 1, 2, 3, 4, 5]
    assert batch.edge_index.tolist() == [[0, 1, 1, 2, 2, 3, 3, 4, 4, 5], [1, 0, 2, 1, 3, 2, 4, 3, 5, 4]]
    assert batch.edge_attr.flatten().tolist() == [1] * 10
    assert batch.y.tolist() == [6.0]


@pytest.mark.parametrize("structure", [False, True])
def test_peptides(tmp_path, serve, structure):
    name = "peptides-struct" if structure else "peptides-func"
    serve(name, made.peptides(structure))
    data = load(DataRecipe(name), tmp_path)
    assert data.y.shape == (7, 11 if structure else 10)
    batch = data.batch(data.train[:1])  # row 6
    assert torch.equal(batch.x, torch.from_numpy(read_smiles(made.PEPTIDES[6], "molecule").x).long())
    if structure:
        assert data.y.mean(0).abs().max() < 1e-6
        assert torch.allclose(data.y[:, 3].std(), torch.ones(()))
    else:
        assert batch.y.tolist() == [[0, 0, 0, 0, 0, 0, 1, 0, 0, 0]]


def test_mutag(tmp_path, serve):
    serve("mutag", made.mutag(), {"test": 2})
    data = load(DataRecipe("mutag"), tmp_path)
    first, second = (data.batch(torch.tensor([graph])) for graph in range(2))
    assert first.x.tolist() == [[1, 0, 0], [0, 1, 0], [1, 0, 0]]
    assert first.edge_index.tolist() == [[0, 1, 1, 2], [1, 0, 2, 1]]  # without the self loop
    assert first.edge_attr.tolist() == [[0, 1, 0], [0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert second.edge_index.tolist() == [[0, 1], [1, 0]]
    assert [int(first.y), int(second.y)] == [1, 0]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"A": "1, 9\n2, 1\n"}, "edge_labels.txt has 7 lines for 2 edges"),
        ({"A": made.MUTAG["A"].replace("4, 5", "1, 5")}, "nodes of different graphs"),
        ({"A": made.MUTAG["A"].replace("4, 5", "4, 99")}, "nodes that do not exist"),
        ({"A": made.MUTAG["A"].replace("4, 5", "4, x")}, "not 2 whole numbers"),
        ({"graph_indicator": "2\n1\n1\n2\n2\n"}, "ascending"),
        ({"node_labels": "1\n"}, "1 lines for 5 nodes"),
        ({"node_labels": "3\n4\n3\n5\n9999999\n"}, "not a type"),
        ({"graph_labels": ""}, "1 numbers a line"),
    ],
)
def test_texts_that_describe_no_graphs_are_refused(changed, words):
    with pytest.raises(InputError, match=words):
        read_tu(made.MUTAG | changed)


class Runs:
    """An object whose pickle runs code."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_nothing_in_the_working_directory_or_in_an_archive_runs(tmp_path, serve, monkeypatch):
    ran = tmp_path / "ran"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("CKGCONV_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # As PyG would find it: it unpickles processed files in ./data, once the default folder.
    processed = tmp_path / "data" / "official" / "mnist" / "MNIST" / "processed"
    processed.mkdir(parents=True)
    for name in ("train_data.pt", "val_data.pt", "test_data.pt", "pre_transform.pt", "pre_filter.pt"):
        (processed / name).write_bytes(pickle.dumps(Runs(ran)))
    raw = processed.parent / "raw"
    raw.mkdir()
    (raw / "MNIST_v2.pt").write_bytes(pickle.dumps(Runs(ran)))
    for zip_form in (True, False):
        serve("mnist", made.benchmark("MNIST", [[{"x": Runs(ran)}], [], []], zip_form))
        with pytest.raises(InputError, match="which is not plain data"):
            load(DataRecipe("mnist"))
    serve("zinc-full", made.zinc({"train": [Runs(ran)], "val": [], "test": []}))
    with pytest.raises(InputError, match="which is not plain data"):
        load(DataRecipe("zinc-full"))
    assert not ran.exists()


def test_archives_that_are_not_the_expected_ones_are_refused(tmp_path, serve):
    splits = [made.rings(range(3, 6)), made.rings(range(6, 8)), made.rings(range(8, 10))]
    serve("cluster", made.benchmark("CLUSTER", splits), {"train": 3, "val": 2, "test": 5})
    with pytest.raises(InputError, match=r"has .*'test': 2.* graphs, not .*'test': 5"):
        build("cluster", tmp_path)
    # What could not be read is not remembered, and the first download that could be is.
    assert not list(tmp_path.iterdir())
    serve("cluster", made.benchmark("CLUSTER", splits), {"train": 3, "val": 2, "test": 2})
    build("cluster", tmp_path).unlink()
    serve("cluster", made.benchmark("CLUSTER", splits[::-1]))
    with pytest.raises(InputError, match=f"damaged or exchanged.*remove .*{SEEN}"):
        build("cluster", tmp_path)
    files = made.peptides(structure=False)
    serve("peptides-func", files)
    files["split.pickle"] += b" "
    with pytest.raises(InputError, match=r"split.pickle .* has the digest"):
        build("peptides-func", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [SEEN]
    (tmp_path / SEEN).write_text("[")
    with pytest.raises(InputError, match="is damaged"):
        build("cluster", tmp_path)


def test_downloads_have_limits(tmp_path):
    with made.serving({"a": b"x" * 100}) as address:
        assert fetch(Archive("a", f"{address}/a", 100), tmp_path, tmp_path).read_bytes() == b"x" * 100
        with pytest.raises(InputError, match="larger than 99 bytes"):
            fetch(Archive("a", f"{address}/a", 99), tmp_path, tmp_path)
        with pytest.raises(InputError, match="could not be downloaded"):
            fetch(Archive("b", f"{address}/b", 99), tmp_path, tmp_path)
    bomb = tmp_path / "bomb.zip"
    bomb.write_bytes(made.zipped(zeros=bytes(10**7)))
    with pytest.raises(InputError, match="larger than 1,000,000 bytes"):
        member(bomb, "zeros", tmp_path, 10**6)
    with pytest.raises(InputError, match="cannot be unpacked: other"):
        member(bomb, "other", tmp_path, 10**6)
    packed = tmp_path / "bomb.gz"
    packed.write_bytes(gzip.compress(bytes(10**7)))
    with pytest.raises(InputError, match="larger than"):
        gunzip(packed, tmp_path, 10**6)
    packed.write_bytes(gzip.compress(bytes(100))[:-5])
    with pytest.raises(InputError, match="cannot be unpacked"):
        gunzip(packed, tmp_path, 10**6)


def test_the_default_folder_is_in_the_cache_of_the_user(tmp_path, monkeypatch):
    monkeypatch.setenv("CKGCONV_DATA", str(tmp_path))
    assert data_folder(None) == tmp_path
    monkeypatch.setenv("CKGCONV_DATA", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert data_folder(None) == tmp_path / "cache" / "ckgconv"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert data_folder(None) == tmp_path / "home" / ".cache" / "ckgconv"


def test_a_split_outside_the_table_is_refused(tmp_path, serve):
    files = made.peptides(structure=False)
    for numbers in (np.array([0, 1, 7]), np.array([0.0, 1, 2])):
        files["split.pickle"] = pickle.dumps({"train": numbers, "val": [3], "test": [4]})
        serve("peptides-func", files)
        with pytest.raises(InputError, match="rows that the table does not have"):
            build("peptides-func", tmp_path)


def other_graph(name, values):
    """Rings, of which one has another value."""
    splits = [made.rings(range(size, size + count)) for size, count in ((3, 3), (6, 2), (8, 2))]
    splits[0][0][name] = values
    return splits


OTHER_RINGS = [
    *(other_graph(name, 5) for name in ("x", "edge_index", "edge_attr", "y")),
    *(other_graph(name, torch.zeros(2, 2, 2)) for name in ("x", "edge_index", "edge_attr", "y")),
    *(5, [1, 2, 3], [None] * 3, [[1], [2], [3]]),
]


@pytest.mark.parametrize("content", OTHER_RINGS)
def test_other_structures_of_tensors_are_refused(tmp_path, serve, content):
    serve("cluster", made.benchmark("CLUSTER", content))
    with pytest.raises(InputError, match="cluster could not be downloaded"):
        build("cluster", tmp_path)


@pytest.mark.parametrize(
    "changed",
    [
        *({"bond_type": torch.zeros(shape)} for shape in ((), (3,), (3, 4), (2, 2, 2))),
        *({"bond_type": torch.full((3, 3), value)} for value in (0.5, 300, -1)),
        *({"atom_type": values} for values in ("abc", torch.full((3,), 300), torch.full((3,), -1), torch.zeros(0))),
        {"logP_SA_cycle_normalized": torch.ones(2)},
    ],
)
def test_molecules_of_another_structure_are_refused(tmp_path, serve, changed):
    files = {split: [made.zinc_molecule(3)] * count for split, count in made.COUNTS.items()}
    files["train"] = [made.zinc_molecule(3) | changed] * 3
    serve("zinc-full", made.zinc(files))
    with pytest.raises(InputError, match="zinc-full could not be downloaded"):
        build("zinc-full", tmp_path)


def test_types_are_whole_numbers_of_any_dtype(tmp_path, serve):
    molecule = made.zinc_molecule(3)
    floating = molecule | {name: molecule[name].float() for name in ("atom_type", "bond_type")}
    serve("zinc-full", made.zinc({split: [floating] * count for split, count in made.COUNTS.items()}))
    assert load_packed(build("zinc-full", tmp_path)).x.flatten().tolist()[:3] == molecule["atom_type"].tolist()


@pytest.mark.parametrize("molecules", [5, None, "abc", (1, 2), [{}] * 3])
def test_what_is_no_list_of_molecules_is_refused(tmp_path, serve, molecules):
    serve("zinc-full", made.zinc({"train": molecules, "val": [], "test": []}))
    with pytest.raises(InputError, match=r"molecules.zip holds has not the official structure"):
        build("zinc-full", tmp_path)


@pytest.mark.parametrize(
    "split",
    [5, [1], {"train": [1]}, {"train": [[1]], "val": [2], "test": [3]}, {"train": [1, 1], "val": [2], "test": [1]}],
)
def test_splits_of_another_structure_are_refused(tmp_path, serve, split):
    serve("peptides-func", made.peptides(structure=False) | {"split.pickle": pickle.dumps(split)})
    with pytest.raises(InputError, match=r"official structure|twice"):
        build("peptides-func", tmp_path)
