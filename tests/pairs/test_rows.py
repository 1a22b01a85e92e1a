"""Rows of some receivers are those of the whole graph: support, coordinates, node part, in float64."""

import pytest
import torch
from torch_geometric.data import Data

from ckgconv import InputError
from ckgconv.graphs import pack
from ckgconv.pairs import Encoding, collate
from ckgconv.pairs import rows as rows_module
from ckgconv.pairs.rows import StoredRows, WalkedRows, split_by_cost, survey

NODES = 30


def graph(directed: bool = False) -> Data:
    """Random edges with weights, parallel ones and self loops; the last two nodes have none."""
    generator = torch.Generator().manual_seed(4)
    edges = torch.randint(NODES - 2, (2, 45), generator=generator)
    edges = torch.cat([edges, edges[:, :5]] if directed else [edges, edges.flip(0), edges[:, :5]], dim=1)
    weight = torch.rand(edges.shape[1], generator=generator, dtype=torch.float64) + 0.1
    weight[3] = 0
    return Data(x=torch.zeros(NODES, 1, dtype=torch.float64), edge_index=edges, edge_weight=weight)


def walked(data: Data, encoding: Encoding) -> WalkedRows:
    graphs = pack(data.edge_index, None, data.edge_weight, NODES, encoding.flow)
    return WalkedRows(graphs, encoding, torch.float64)


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize(("steps", "hops"), [(1, 1), (2, 2), (4, 1), (1, 3), (3, 2)])
def test_rows_are_those_of_the_whole_graph(steps, hops, flow):
    data, encoding = graph(directed=True), Encoding("rrwp", steps, 0, hops, flow)
    whole = collate(data, encoding, torch.float64)
    receivers = torch.tensor([1, 4, 5, 17, 28])
    for source in (walked(data, encoding), survey(walked(data, encoding), 1e9).rows):
        found = source.rows(receivers)
        row, entry = found.all_entries()
        assert found.size.tolist() == whole.pairs.support_size[receivers].tolist()
        chosen = torch.isin(whole.pairs.receiver, receivers)
        assert torch.equal(receivers[row], whole.pairs.receiver[chosen])
        assert torch.equal(found.sender[entry].long(), whole.pairs.sender[chosen])
        torch.testing.assert_close(found.coordinates[entry], whole.pairs.coordinates[chosen], rtol=0, atol=1e-14)


def test_a_survey_keeps_rows_that_fit_and_finds_return_probabilities(monkeypatch):
    data, encoding = graph(), Encoding("rrwp", 3, 0, 2)
    whole = collate(data, encoding, torch.float64)
    monkeypatch.setattr(rows_module, "WALKED", 200)
    needed = whole.pairs.coordinates.nbytes + 4 * whole.pairs.num_pairs
    for most, kind in ((needed, StoredRows), (needed - 1, WalkedRows)):
        found = survey(walked(data, encoding), most)
        assert type(found.rows) is kind
        torch.testing.assert_close(found.node_part, whole.node_encoding, rtol=0, atol=1e-14)
    chunks = list(walked(data, encoding).chunks(torch.arange(NODES)))
    assert len(chunks) > 2
    assert torch.cat(chunks).tolist() == list(range(NODES))


def test_chunks_bound_the_cost_of_each():
    cost = torch.randint(1, 10, (200,))
    for chunk in split_by_cost(torch.arange(200), cost, 50):
        assert int(cost[chunk].sum()) < 60
    assert list(split_by_cost(torch.arange(0), cost[:0], 50)) == []


@pytest.mark.parametrize(
    ("name", "support", "sentence"),
    [
        ("rrwp", "global", "choose a number of hops"),
        ("rrwp", "sparse_global", "choose a number of hops"),
        ("rrwp", 0, "at least 1"),
        ("spd", 2, "choose 'rrwp'"),
        ("heat", 2, "choose 'rrwp'"),
    ],
)
def test_encodings_that_need_the_whole_graph_are_refused(name, support, sentence):
    with pytest.raises(InputError, match=sentence):
        walked(graph(), Encoding(name, 2, 2, support))
