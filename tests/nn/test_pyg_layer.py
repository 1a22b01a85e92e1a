"""PyG's tools on the layer: Sequential, summary, explainers, hooks."""

import copy
import sys
from types import SimpleNamespace

import pytest
import torch
from graphs_for_tests import random_edges
from torch import nn
from torch_geometric.data import Batch, Data
from torch_geometric.explain import AttentionExplainer, Explainer, GNNExplainer, GraphMaskExplainer
from torch_geometric.nn import GATv2Conv, MessagePassing, Sequential, global_add_pool, summary
from torch_geometric.nn.models.basic_gnn import BasicGNN
from torch_geometric.profile import count_parameters, get_model_size

from ckgconv import CKGConv, InputError

EDGES = random_edges(7, 9, 3)
EDGES = EDGES[:, EDGES[0] != EDGES[1]]
X = torch.randn(7, 4, generator=torch.Generator().manual_seed(0))
CONFIG = dict(mode="regression", task_level="node", return_type="raw")


class Net(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.first = CKGConv(4, 8, steps=3, **options)
        self.second = CKGConv(8, 2, steps=3, **options)

    def forward(self, x, edge_index, edge_attr=None):
        return self.second(self.first(x, edge_index, edge_attr).relu(), edge_index, edge_attr)


def explained(model, algorithm, **given):
    explainer = Explainer(
        model.eval(), algorithm, explanation_type="model", edge_mask_type="object", model_config=CONFIG
    )
    return explainer(X, EDGES, index=0, **given)


@pytest.mark.parametrize("options", [{}, {"support": 1}, {"pe": "heat"}, {"pe": "rd"}, {"edge_dim": 3}], ids=str)
def test_gnn_explainer_weights_edges(options):
    model = Net(**options)
    given = {"edge_attr": torch.randn(EDGES.shape[1], 3)} if "edge_dim" in options else {}
    explanation = explained(model, GNNExplainer(epochs=3), **given)
    assert explanation.edge_mask.shape == (EDGES.shape[1],)
    assert (explanation.edge_mask > 0).any()
    assert model.first.explain is None
    assert torch.isfinite(model(X, EDGES, given.get("edge_attr"))).all()


def test_a_mask_is_a_weight():
    conv = CKGConv(4, 6, steps=3, edge_dim=2, cached=True).eval()
    mask, weights = torch.rand(EDGES.shape[1]), torch.rand(EDGES.shape[1])
    attributes = torch.randn(EDGES.shape[1], 2)
    conv.explain, conv._edge_mask, conv._apply_sigmoid = True, mask, False
    masked = conv(X, EDGES, attributes, edge_weight=weights)
    with pytest.raises(InputError, match="explain without pairs"):
        conv(X, EDGES, attributes, pairs=conv.encode(EDGES, num_nodes=7))
    conv._edge_mask = mask[:3]
    with pytest.raises(InputError, match=r"mask has shape \[3\]"):
        conv(X, EDGES, attributes)
    conv.explain = None
    plain = copy.deepcopy(conv)
    expected = plain(X, EDGES, attributes * mask.unsqueeze(-1), edge_weight=weights * mask)
    torch.testing.assert_close(masked, expected)


def test_explainers_of_messages_are_refused():
    with pytest.raises(InputError, match="has no messages along edges"):
        explained(Net(), GraphMaskExplainer(2, epochs=1, log=False))
    with pytest.raises(InputError, match="has no messages along edges"):
        explained(Net(), AttentionExplainer())
    with pytest.raises(InputError, match="'spd' counts hops"):
        explained(Net(pe="spd"), GNNExplainer(epochs=1))


HOOKS = [name for name in vars(MessagePassing) if name.startswith("register_") and name.endswith("_hook")]


@pytest.mark.parametrize("name", HOOKS)
def test_hooks_on_messages_are_refused(name):
    with pytest.raises(InputError, match="has no messages along edges"):
        getattr(CKGConv(4, 6), name)(print)


def test_hooks_of_modules_run():
    conv, seen = CKGConv(4, 6), []
    conv.register_forward_hook(lambda module, given, result: seen.append(result.shape))
    conv(X, EDGES)
    assert seen == [(7, 6)]
    with pytest.raises(InputError, match="has no messages along edges"):
        conv.propagate(EDGES, x=X)


def test_sequential_and_summary(monkeypatch):
    # PyG's summary prints with a package that is not needed otherwise.
    monkeypatch.setitem(sys.modules, "tabulate", SimpleNamespace(tabulate=lambda *args, **options: str(args)))
    model = Sequential(
        "x, edge_index, edge_attr, batch",
        [
            (CKGConv(4, 8, steps=3), "x, edge_index, edge_attr, batch -> x"),
            nn.ReLU(inplace=True),
            (CKGConv(8, 8, steps=3), "x, edge_index, edge_attr, batch -> x"),
            (global_add_pool, "x, batch -> x"),
            nn.Linear(8, 2),
        ],
    )
    pair = Data(x=X[:2], edge_index=torch.tensor([[0, 1], [1, 0]]))
    batch = Batch.from_data_list([Data(x=X, edge_index=EDGES), pair])
    given = batch.x, batch.edge_index, None, batch.batch
    assert model(*given).shape == (2, 2)
    table = summary(model, *given)
    assert "CKGConv" in table
    parameters = f"{sum(parameter.numel() for parameter in model[0].parameters()):,}"
    assert parameters in table
    assert count_parameters(model) == sum(parameter.numel() for parameter in model.parameters())
    assert get_model_size(model) > 4 * count_parameters(model)


def test_a_network_of_pyg_with_this_layer():
    class CKGNet(BasicGNN):
        supports_edge_weight = supports_edge_attr = True

        def init_conv(self, in_channels, out_channels, **options):
            return CKGConv(in_channels, out_channels, **options)

    model = CKGNet(4, 8, num_layers=2, out_channels=3, steps=3, norm="BatchNorm")
    assert model(X, EDGES, edge_weight=torch.rand(EDGES.shape[1])).shape == (7, 3)


def test_no_nodes_and_no_edges_as_in_pyg():
    none = torch.zeros(2, 0, dtype=torch.int64)
    for layer in (GATv2Conv(4, 6), CKGConv(4, 6), CKGConv(4, 6, support="sparse_global"), CKGConv(4, 6, pe="spd")):
        assert layer(X, none).shape == (7, 6)
        assert layer(X[:0], none).shape == (0, 6)
        assert layer.eval()(X[:0], none).shape == (0, 6)
    conv = CKGConv(4, 6).eval()
    batch = torch.tensor([1, 1, 1, 3, 3, 3, 3])
    expected = conv(X, none, batch=torch.tensor([0, 0, 0, 1, 1, 1, 1]))
    torch.testing.assert_close(conv(X, none, batch=batch), expected)
    assert conv(X[:0], none, batch=batch[:0]).shape == (0, 6)


def test_repr_and_keywords():
    conv = CKGConv(4, 6, steps=3)
    assert repr(conv).startswith("CKGConv(\n  4 → 6, pe='rrwp', steps=3, support='global'\n")
    y = conv(x=X, edge_index=EDGES.int(), batch=torch.zeros(7, dtype=torch.int32))
    torch.testing.assert_close(y, copy.deepcopy(conv)(X, EDGES))
