"""Features of graphs: standardised by the training split, joined to pooled nodes, zero where unknown."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Batch, Data

from ckgconv.checks import InputError
from ckgconv.nn.export import export_model
from ckgconv.nn.graph_features import MOST_DEVIATIONS, GraphFeatures
from ckgconv.nn.models import build_model
from ckgconv.recipes import recipe


def small(**changes):
    model = recipe("zinc-demo").model
    return replace(model, width=8, blocks=2, steps=3, **changes)


def graphs(features):
    x, edges = torch.tensor([[0], [1]]), torch.tensor([[0, 1], [1, 0]])
    common = {"x": x, "edge_index": edges, "edge_attr": torch.tensor([[1], [1]])}
    return Batch.from_data_list([Data(**common, graph_features=row.unsqueeze(0)) for row in features])


def test_features_are_standardised_clipped_and_zero_where_unknown():
    join = GraphFeatures(3)
    join.fit(torch.tensor([[1.0, 5.0, float("nan")], [3.0, 5.0, float("nan")]]))
    joined = join(torch.ones(2, 1), torch.tensor([[2.0, 6.0, 9.0], [float("nan"), 5.0, 100.0]]))
    assert joined.tolist() == [[1.0, 0.0, 1.0, 5.0], [1.0, 0.0, 0.0, MOST_DEVIATIONS]]


def test_a_head_reads_them_and_none_where_the_recipe_has_none():
    torch.manual_seed(0)
    model = build_model(small(graph_features=2)).eval()
    same = graphs(torch.zeros(2, 2))
    other = graphs(torch.tensor([[0.0, 0.0], [1.0, -1.0]]))
    assert model.embed(model.prepare(same)).shape == (2, 10)
    first, second = model(same), model(other)
    assert torch.equal(first[0], second[0])
    assert not torch.equal(first[1], second[1])
    plain = build_model(small()).eval()
    assert torch.equal(plain(same), plain(other))
    assert plain.prepare(same).graph_features is None


def test_what_does_not_fit_is_refused():
    model = build_model(small(graph_features=3))
    with pytest.raises(InputError, match="graph_features has shape"):
        model(graphs(torch.zeros(2, 2)))
    with pytest.raises(InputError, match="reads 3 of each graph"):
        model(Data(x=torch.tensor([[0]]), edge_index=torch.zeros(2, 0, dtype=torch.long)))
    with pytest.raises(InputError, match="does not pool"):
        build_model(small(graph_features=3, head=replace(small().head, pooling="none")))


def test_pooled_features_are_scaled():
    torch.manual_seed(0)
    model = build_model(small(head=replace(small().head, scale=0.5))).eval()
    batch = model.prepare(graphs(torch.zeros(2, 1)))
    whole = build_model(small()).eval()
    whole.load_state_dict(model.state_dict())
    assert torch.allclose(model.embed(batch), whole.embed(batch) / 2)


def test_an_exported_network_reads_them():
    model = build_model(small(graph_features=2)).eval()
    data = graphs(torch.randn(3, 2))
    program = export_model(model, graphs(torch.zeros(2, 2)))
    assert torch.allclose(program.module()(model.prepare(data)), model(data), atol=1e-6)
