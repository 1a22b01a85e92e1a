import pytest
import torch

from ckgconv import InputError, pack
from ckgconv.graphs import index_of


def edges(*pairs):
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2).T


def test_pack_numbers_graphs_and_degrees():
    graphs = pack(edges((0, 1), (1, 0), (2, 2)), torch.tensor([0, 0, 1, 1]))
    assert graphs.num_graphs == 2
    assert graphs.node_ptr.tolist() == [0, 2, 4]
    assert graphs.sizes.tolist() == [2, 2]
    assert graphs.degree(torch.float64).tolist() == [1, 1, 1, 0]


def test_degree_adds_weights_of_parallel_edges():
    graphs = pack(edges((0, 1), (0, 1)), num_nodes=2, edge_weight=torch.tensor([0.5, 2.0]))
    assert graphs.degree(torch.float32).tolist() == [0.0, 2.5]


def test_targets_receive_unless_the_flow_is_turned():
    index = edges((1, 0), (2, 0), (3, 1))
    graphs = pack(index, num_nodes=4)
    assert (graphs.receiver.tolist(), graphs.sender.tolist()) == ([0, 0, 1], [1, 2, 3])
    assert graphs.degree(torch.float32).tolist() == [2, 1, 0, 0]
    assert torch.equal(graphs.edge_index, index)
    turned = pack(index, num_nodes=4, flow="target_to_source")
    assert (turned.receiver.tolist(), turned.sender.tolist()) == ([1, 2, 3], [0, 0, 1])
    assert torch.equal(index_of(turned.receiver, turned.sender, "target_to_source"), index)
    with pytest.raises(InputError, match="flow is 'forward': choose one of source_to_target, target_to_source"):
        pack(index, num_nodes=4, flow="forward")


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32])
def test_narrow_integers_are_widened(dtype):
    graphs = pack(edges((0, 1), (2, 2)).to(dtype), torch.tensor([0, 0, 1], dtype=dtype))
    assert {graphs.receiver.dtype, graphs.sender.dtype, graphs.node_graph.dtype} == {torch.int64}
    assert torch.equal(graphs.edge_index, edges((0, 1), (2, 2)))


def test_graphs_may_have_no_nodes():
    graphs = pack(edges((0, 1), (2, 2)), torch.tensor([1, 1, 3]), num_graphs=5)
    assert graphs.sizes.tolist() == [0, 2, 0, 1, 0]
    assert graphs.largest == 2
    assert pack(edges((0, 1)), torch.tensor([1, 1])).sizes.tolist() == [0, 2]
    assert pack(edges(), num_nodes=0).sizes.tolist() == [0]
    nothing = pack(edges(), torch.zeros(0, dtype=torch.int64))
    assert (nothing.num_graphs, nothing.num_nodes, nothing.largest) == (0, 0, 0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (dict(edge_index=edges((0, 5)), num_nodes=2), ["edge_index", "5", "0 … 1"]),
        (dict(edge_index=edges((0, -1)), num_nodes=2), ["edge_index", "-1"]),
        (dict(edge_index=edges((0, 1)).float(), num_nodes=2), ["edge_index", "float32", "long()"]),
        (dict(edge_index=edges((0, 1)).bool(), num_nodes=2), ["edge_index", "bool", "long()"]),
        (dict(edge_index=torch.zeros(3, 2).long(), num_nodes=2), ["edge_index", "[3, 2]"]),
        (dict(edge_index=edges((0, 1)), num_nodes=0), ["empty (0 nodes)", "1 edges", "no edges"]),
        (dict(edge_index=edges()), ["num_nodes"]),
        (dict(edge_index=edges((0, 1)), batch=torch.tensor([0, 1])), ["edge_index", "different graphs"]),
        (dict(edge_index=edges(), batch=torch.tensor([1, 0])), ["batch", "ascending"]),
        (dict(edge_index=edges(), batch=torch.tensor([0, 0, 2]), num_graphs=2), ["batch", "2", "0 … 1"]),
        (dict(edge_index=edges(), batch=torch.tensor([0, 2**40])), ["batch", str(2**40)]),
        (dict(edge_index=edges(), batch=torch.tensor([0.0])), ["batch", "float32"]),
        (dict(edge_index=edges((0, 1)), num_nodes=2, edge_weight=torch.tensor([-1.0])), ["edge_weight", "-1.0"]),
        (dict(edge_index=edges((0, 1)), num_nodes=2, edge_weight=torch.tensor([torch.nan])), ["edge_weight", "nan"]),
        (dict(edge_index=edges((0, 1)), num_nodes=2, edge_weight=torch.tensor([1])), ["edge_weight", "int64"]),
        (dict(edge_index=edges((0, 1)), num_nodes=2, edge_weight=torch.ones(2)), ["edge_weight", "[2]"]),
    ],
)
def test_bad_graphs_are_refused_with_a_sentence(arguments, words):
    with pytest.raises(InputError) as refusal:
        pack(**arguments)
    for word in words:
        assert word in str(refusal.value)
    assert str(refusal.value).endswith(".")
