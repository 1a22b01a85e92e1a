import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from ckgconv import CKGCN, InputError
from ckgconv.data import PackedDataset, from_pyg, from_pyg_masks, from_pyg_splits, load, load_packed, save_packed, zinc
from ckgconv.data.packed import from_arrays, in_order, join
from ckgconv.pe import AddRRWP, AddRWSE, AddSparseRRWP, AddSPD
from ckgconv.recipe import DataRecipe


def test_zinc_counts():
    data = zinc()
    assert data.num_graphs == 12_000
    assert data.x.shape == (277_864, 1)
    assert data.edge_index.shape == (2, 597_970)
    assert [len(data.split(name)) for name in ("train", "val", "test")] == [10_000, 1_000, 1_000]
    target = data.y[data.train]
    assert target.mean().item() == pytest.approx(0.0153, abs=1e-4)
    assert target.min().item() == pytest.approx(-42.04, abs=0.01)


def test_batch_equals_pyg_collation():
    data = zinc()
    numbers = torch.tensor([5, 11_999, 5, 0])
    ours = data.batch(numbers)
    parts = []
    for number in numbers.tolist():
        nodes = slice(int(data.node_ptr[number]), int(data.node_ptr[number + 1]))
        edges = slice(int(data.edge_ptr[number]), int(data.edge_ptr[number + 1]))
        parts.append(
            Data(
                x=data.x[nodes],
                edge_index=data.edge_index[:, edges],
                edge_attr=data.edge_attr[edges],
                y=data.y[number : number + 1],
            )
        )
    theirs = Batch.from_data_list(parts)
    assert ours.num_graphs == theirs.num_graphs
    for name in ("x", "edge_index", "edge_attr", "y", "batch"):
        assert torch.equal(ours[name], theirs[name])
    assert CKGCN.from_recipe("zinc").eval()(ours).shape == (4, 1)


def test_bad_files_and_numbers_are_refused(tmp_path):
    with pytest.raises(InputError, match="graphs contains 12000"):
        zinc().batch(torch.tensor([12_000]))
    wrong = tmp_path / "wrong.npz"
    wrong.write_text("smiles,y")
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(wrong)
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(tmp_path / "absent.npz")
    np.savez(tmp_path / "half.npz", num_nodes=np.ones(1))
    with pytest.raises(InputError, match="lacks the arrays edge_index"):
        load_packed(tmp_path / "half.npz")
    np.savez(tmp_path / "code.npz", num_nodes=np.array([object()]))
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(tmp_path / "code.npz")


def node_labelled() -> PackedDataset:
    """Three graphs of 1, 2 and 3 nodes with a label per node."""
    return from_arrays(
        {
            "num_nodes": torch.tensor([1, 2, 3]),
            "num_edges": torch.tensor([0, 2, 4]),
            "edge_index": torch.tensor([[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]),
            "x": torch.rand(6, 2),
            "pos": torch.rand(6, 2),
            "y": torch.arange(6),
            "train_idx": torch.tensor([0]),
            "val_idx": torch.tensor([1]),
            "test_idx": torch.tensor([2]),
        }
    )


def test_node_targets_and_positions_travel_with_their_nodes():
    data = node_labelled()
    assert data.node_targets
    batch = data.batch(torch.tensor([2, 0]))
    assert batch.y.tolist() == [3, 4, 5, 0]
    assert torch.equal(batch.pos, data.pos[[3, 4, 5, 0]])


def test_save_and_load_round_trip(tmp_path):
    for data in (node_labelled(), zinc().limited(5)):
        save_packed(data, tmp_path / "data.npz")
        again = load_packed(tmp_path / "data.npz")
        for numbers in (data.train, data.val, data.test):
            one, other = data.batch(numbers), again.batch(numbers)
            for name in one.keys():  # noqa: SIM118
                assert torch.equal(torch.as_tensor(one[name]), torch.as_tensor(other[name]))
    with np.load(tmp_path / "data.npz", allow_pickle=False) as archive:
        assert archive["x"].dtype == np.uint8


def test_limit_takes_the_first_graphs_of_each_split():
    data = zinc()
    small = data.limited(3)
    assert small.num_graphs == 9
    for name in ("train", "val", "test"):
        one, other = small.batch(small.split(name)), data.batch(data.split(name)[:3])
        for key in ("x", "edge_index", "edge_attr", "y"):
            assert torch.equal(one[key], other[key])
    with pytest.raises(InputError, match=r"data.limit is 0"):
        data.limited(0)
    with pytest.raises(InputError, match="no split 'dev'"):
        data.split("dev")


def test_folder_of_packed_files_and_any_pyg_data(tmp_path):
    data = zinc().limited(4)
    graphs = {name: [data.batch(number.view(1)) for number in data.split(name)] for name in ("train", "val", "test")}
    for parts in graphs.values():
        for part in parts:
            del part.batch
    joined = from_pyg_splits(graphs["train"], graphs["val"], graphs["test"])
    for name in ("train", "val", "test"):
        assert torch.equal(joined.batch(joined.split(name)).x, data.batch(data.split(name)).x)
        save_packed(from_pyg(graphs[name]), tmp_path / f"{name}.npz")
    folder = load(DataRecipe(str(tmp_path)))
    assert torch.equal(folder.batch(folder.test).y, data.batch(data.test).y)
    with pytest.raises(InputError, match="no graph"):
        from_pyg([])
    with pytest.raises(InputError, match="Graph 0 has no x"):
        from_pyg([Data(edge_index=torch.zeros(2, 0).long(), num_nodes=1)])
    (tmp_path / "val.npz").unlink()
    with pytest.raises(InputError, match=r"no val.npz"):
        load(DataRecipe(str(tmp_path)))


def weighted(number: int, **more) -> Data:
    edges = torch.tensor([[0, 1], [1, 0]])
    return Data(x=torch.rand(2, 3), edge_index=edges, edge_weight=torch.full((2,), float(number)), **more)


def test_edge_weights_are_kept(tmp_path):
    data = from_pyg_splits([weighted(1), weighted(2)], [weighted(3)], [weighted(4)])
    save_packed(data, tmp_path / "weighted.npz")
    for each in (data, load_packed(tmp_path / "weighted.npz"), data.limited(2)):
        assert each.batch(torch.tensor([3, 1])).edge_weight.tolist() == [4, 4, 2, 2]
    one = Data(x=torch.rand(2, 3), edge_index=torch.tensor([[0, 1], [1, 0]]), edge_weight=torch.tensor([1.0, -2.0]))
    with pytest.raises(InputError, match=r"edge_weight contains -2.0"):
        from_pyg([one])
    with pytest.raises(InputError, match=r"edge_weight of graph 0 has shape \[1\], expected \[2\]"):
        from_pyg([Data(x=one.x, edge_index=one.edge_index, edge_weight=torch.ones(1))])


@pytest.mark.parametrize("name", ["edge_attr", "edge_weight", "y", "pos"])
def test_an_attribute_that_one_graph_lacks_is_refused(name):
    more = {"edge_attr": torch.ones(2, 1), "y": torch.ones(1), "pos": torch.rand(2, 2)}
    graphs = [weighted(number, **more) for number in range(3)]
    del graphs[1][name]
    with pytest.raises(InputError, match=f"Graph 1 has no {name}, but others have"):
        from_pyg(graphs)
    with pytest.raises(InputError, match=f"Only train and test has {name}"):
        from_pyg_splits(graphs[:1], graphs[1:2], graphs[2:])


@pytest.mark.parametrize("transform", [AddRRWP(3), AddSparseRRWP(3), AddRWSE(3), AddSPD(3)])
def test_precomputed_coordinates_are_refused(transform):
    with pytest.raises(InputError, match="which a packed data set does not hold: leave out the transform"):
        from_pyg([transform(weighted(1))])
    chosen = weighted(1)
    chosen.support_index = chosen.edge_index
    with pytest.raises(InputError, match="Graph 0 has support_index"):
        from_pyg([chosen])


def node_split(**changed) -> PackedDataset:
    """Two graphs of 2 and 3 nodes whose nodes have splits of their own."""
    arrays = {
        "num_nodes": torch.tensor([2, 3]),
        "num_edges": torch.tensor([2, 4]),
        "edge_index": torch.tensor([[0, 1, 0, 1, 1, 2], [1, 0, 1, 0, 2, 1]]),
        "x": torch.rand(5, 2),
        "y": torch.arange(5),
        "node_split": torch.tensor([0, 1, -1, 2, 0], dtype=torch.int8),
    }
    return from_arrays({name: value for name, value in {**arrays, **changed}.items() if value is not None})


def test_nodes_with_splits_of_their_own(tmp_path):
    data = node_split()
    assert data.node_targets
    assert [data.split(name).tolist() for name in ("train", "val", "test")] == [[0, 1]] * 3
    assert [data.target_rows(name).tolist() for name in ("train", "val", "test")] == [[0, 4], [1], [3]]
    assert data.batch(torch.tensor([1, 0])).node_split.tolist() == [-1, 2, 0, 0, 1]
    first = data.limited(1)
    assert (first.num_graphs, first.node_split.tolist(), first.test.tolist()) == (1, [0, 1], [0])
    turned = data.subset({"train": torch.tensor([1]), "val": torch.tensor([0, 1]), "test": torch.tensor([0])})
    assert turned.node_split.tolist() == [-1, 2, 0, 0, 1]
    assert [turned.split(name).tolist() for name in ("train", "val", "test")] == [[0], [1, 0], [1]]
    save_packed(data, tmp_path / "data.npz")
    again = load_packed(tmp_path / "data.npz")
    assert again.node_split.tolist() == data.node_split.tolist()
    assert again.val.tolist() == [0, 1]
    assert data.to(torch.device("meta")).node_split.device.type == "meta"


def test_joined_parts_keep_the_splits_of_their_nodes():
    data = node_split()
    joined = join({"train": data, "val": data, "test": data})
    # In a split count the nodes of its graphs that are themselves in the split.
    assert [joined.target_rows(name).tolist() for name in ("train", "val", "test")] == [[0, 4], [6], [13]]
    with pytest.raises(InputError, match="Only train has node_split"):
        join({"train": data, "val": node_split(node_split=None), "test": node_split(node_split=None)})


def test_target_rows_of_graphs_and_of_their_nodes():
    assert zinc().target_rows("val").tolist() == list(range(10_000, 11_000))
    assert node_labelled().target_rows("val").tolist() == [1, 2]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"node_split": torch.zeros(4, dtype=torch.int64)}, r"shape \[4\], expected \[5\]"),
        ({"node_split": torch.tensor([0, 1, 2, 3, 0])}, "contains 3: give 0 for train"),
        ({"node_split": torch.tensor([0.0, 1, 2, 0.5, 0])}, "as integers"),
        ({"y": None}, "y has no rows: give one target per node"),
        ({"y": torch.zeros(2)}, "splits 5 nodes, but y has 2 rows"),
    ],
)
def test_wrong_splits_of_nodes_are_refused(changed, words):
    with pytest.raises(InputError, match=words):
        node_split(**changed)


def masked_graph(nodes: int = 6, **changed) -> Data:
    """A ring with masks, as PyG's data sets of one large graph have them."""
    ring = torch.stack([torch.arange(nodes), (torch.arange(nodes) + 1) % nodes])
    masks = {f"{name}_mask": torch.arange(nodes) == place for place, name in enumerate(("train", "val", "test"))}
    graph = Data(x=torch.rand(nodes, 3), edge_index=ring, y=torch.arange(nodes) % 2, **masks)
    for name, value in changed.items():
        graph[name] = value
    return graph


def test_masks_of_one_or_several_pyg_graphs():
    data = from_pyg_masks(masked_graph())
    assert data.node_split.tolist() == [0, 1, 2, -1, -1, -1]
    assert [data.split(name).tolist() for name in ("train", "val", "test")] == [[0]] * 3
    # One column of classes becomes a vector; several targets per node remain a matrix.
    assert from_pyg_masks(masked_graph(y=torch.zeros(6, 1, dtype=torch.int64))).y.shape == (6,)
    assert from_pyg_masks(masked_graph(y=torch.zeros(6, 2))).y.shape == (6, 2)
    two = from_pyg_masks(masked_graph(), masked_graph(4))
    assert two.target_rows("val").tolist() == [1, 7]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"val_mask": None}, "Graph 0 has no val_mask"),
        ({"val_mask": torch.ones(6, dtype=torch.bool)}, "in val_mask and in another mask"),
        ({"test_mask": torch.zeros(6, 10, dtype=torch.bool)}, "choose a column"),
        ({"y": None}, "y has no rows"),
    ],
)
def test_wrong_masks_are_refused(changed, words):
    with pytest.raises(InputError, match=words):
        from_pyg_masks(masked_graph(**changed))


def test_distinct_numbers_keep_their_order():
    values, places = in_order(torch.tensor([7, 3, 7, 9, 3]))
    assert values.tolist() == [7, 3, 9]
    assert places.tolist() == [0, 1, 0, 2, 1]


def test_node_numbers_of_large_graphs_survive_a_file(tmp_path):
    nodes = 70_000
    ends = torch.tensor([[0, nodes - 1], [nodes - 1, 0]])
    save_packed(from_pyg([Data(x=torch.zeros(nodes, 1), edge_index=ends, num_nodes=nodes)]), tmp_path / "large.npz")
    assert torch.equal(load_packed(tmp_path / "large.npz").batch(torch.tensor([0])).edge_index, ends)


def test_graphs_without_nodes_are_kept():
    none = Data(x=torch.zeros(0, 2), edge_index=torch.zeros(2, 0, dtype=torch.int64), y=torch.zeros(1))
    some = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1], [1, 0]]), y=torch.ones(1))
    graphs = [none, some, none, some, none]
    ours, theirs = from_pyg(graphs).batch(torch.arange(5)), Batch.from_data_list(graphs)
    for name in ("x", "edge_index", "y", "batch", "ptr"):
        assert torch.equal(ours[name], theirs[name])


def test_integers_stay_integers_in_a_file(tmp_path):
    x = torch.tensor([[-1], [2**62 + 1]])
    counts = {"num_nodes": torch.tensor([2]), "num_edges": torch.tensor([0])}
    data = from_arrays({**counts, "edge_index": torch.zeros(2, 0, dtype=torch.int64), "x": x})
    save_packed(data, tmp_path / "d.npz")
    assert load_packed(tmp_path / "d.npz").x.tolist() == x.tolist()
