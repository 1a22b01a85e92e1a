"""Message passing and GPS: every layer trains, ignores padding and does not depend on the numbering.

Covers `ckgconv.nn.gated_gcn`.
"""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from small_data import padded_and_plain
from torch_geometric.nn import GCNConv

from ckgconv import InputError, recipe
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.recipe import HeadRecipe, MessagePassingRecipe

pytestmark = pytest.mark.usefixtures("double")

LAYERS = ["gcn", "gine", "gatv2", "gatedgcn", "pna"]


def small(layer: str, **changed) -> MessagePassing:
    zinc = recipe("zinc").model
    torch.manual_seed(0)
    values = {"encoding": "spd", "steps": 1, "support": 1, "node_steps": 5, **changed}
    head = HeadRecipe("pyramid", "sum", layers=2, outputs=1)
    chosen = MessagePassingRecipe(layer=layer, width=8, blocks=2, node=zinc.node, edge=zinc.edge, head=head, **values)
    return MessagePassing(chosen).double()


GPS = {"encoding": "rrwp", "steps": 4, "support": "global", "attention_heads": 2}
FORMS = [{}, {"residual": False, "ffn": False}, {"norm": "layer"}, GPS]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_layer_trains_and_ignores_the_numbering(layer, form):
    model, data = small(layer, **form), molecules(11, 6)
    model(data).square().sum().backward()
    unread = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    # The edges of the last block are not read.
    assert all(layer == "gatedgcn" and name.startswith("blocks.1.layer.edge_norm") for name in unread) or layer == "gcn"
    model.eval()
    order = torch.cat([torch.randperm(11), 11 + torch.randperm(6)])
    moved = data.clone()
    moved.x, moved.edge_index = data.x[order], order.argsort()[data.edge_index]
    torch.testing.assert_close(model(moved), model(data), rtol=0, atol=1e-10)


@pytest.mark.parametrize("form", [{}, GPS])
@pytest.mark.parametrize("layer", LAYERS)
def test_padding_changes_nothing(layer, form):
    model = small(layer, **form)
    wide, batch = padded_and_plain(model, torch.tensor([2, 0, 3]))
    torch.testing.assert_close(model(wide)[:3], model(batch), rtol=0, atol=1e-10)


def test_gcn_equals_that_of_pyg():
    model, data = small("gcn"), molecules(9)
    batch = model.prepare(data)
    theirs = GCNConv(8, 8).double()
    theirs.load_state_dict(model.blocks[0].layer.layer.state_dict())
    h = torch.randn(9, 8)
    ours, _ = model.blocks[0].layer(h, torch.zeros(batch.edge_row.shape[0], 8), batch)
    torch.testing.assert_close(ours, theirs(h, data.edge_index), rtol=0, atol=1e-12)


def test_refusals():
    with pytest.raises(InputError, match=r"model.heads is 3, which does not divide model.width = 8"):
        small("gatv2", heads=3)
    with pytest.raises(InputError, match=r"model.attention_heads is 3"):
        small("gine", **{**GPS, "attention_heads": 3})
    assert replace(small("gine").recipe, dropout=0.5).dropout == 0.5
