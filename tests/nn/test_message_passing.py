"""Message passing and GPS: each layer and each block equals its equation; what does not fit is refused.

Covers `ckgconv.nn.gated_gcn`, `ckgconv.nn.message_layers` and `ckgconv.nn.node_attention`. What every model does is in
`test_all_models`.
"""

import pytest
import torch
from graphs_for_tests import molecules
from torch_geometric.nn import GCNConv

from ckgconv import InputError, recipe
from ckgconv.nn.message_passing import MessagePassing
from ckgconv.nn.node_input import with_drawn_signs
from ckgconv.recipe import AttributeRecipe, HeadRecipe, MessagePassingRecipe

pytestmark = pytest.mark.usefixtures("double")

LAYERS = ["gcn", "gcn_edges", "gine", "gatv2", "gatedgcn", "pna"]


def small(layer: str, **changed) -> MessagePassing:
    zinc = recipe("zinc").model
    torch.manual_seed(0)
    edge = AttributeRecipe("none") if layer == "gcn" else zinc.edge
    values = {"encoding": "spd", "steps": 1, "support": 1, "node_steps": 5, "edge": edge, **changed}
    head = HeadRecipe("pyramid", "sum", layers=2, outputs=1)
    return MessagePassing(MessagePassingRecipe(layer=layer, width=8, blocks=2, node=zinc.node, head=head, **values))


GPS = {"encoding": "rrwp", "steps": 4, "support": "global", "attention_heads": 2}
FORMS = [{}, {"residual": False, "ffn": False}, {"norm": "layer"}, GPS]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layer", LAYERS)
def test_every_parameter_has_a_gradient(layer, form):
    model, data = small(layer, **form), molecules(11, 6)
    model(data).square().sum().backward()
    unread = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    # The edges of the last block are not read.
    assert all(layer == "gatedgcn" and name.startswith("blocks.1.layer.edge_norm") for name in unread)


@pytest.mark.parametrize("layer", [layer for layer in LAYERS if layer != "gatedgcn"])
def test_edges_without_attributes_are_fine(layer):
    """No parameter waits for attributes that never come."""
    model, data = small(layer, edge=AttributeRecipe("none")), molecules(11, 6)
    data.edge_attr = None
    model(data).square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    if layer in ("gatv2", "pna"):
        assert not any("edge" in name for name, _ in model.named_parameters())


def test_gcn_with_edges_equals_its_equation():
    model, data = small("gcn_edges"), molecules(9)
    layer, batch = model.blocks[0].layer, model.prepare(data)
    torch.nn.init.normal_(layer.shift)
    h, edges = torch.randn(9, 8), torch.randn(batch.edge_row.shape[0], 8)
    expected = layer.shift.expand(9, 8).clone()
    for (sender, receiver), edge in zip(batch.edge_index.T.tolist(), edges, strict=True):
        expected[receiver] = expected[receiver] + torch.relu(layer.linear.weight @ h[sender] + edge)
    torch.testing.assert_close(layer(h, edges, batch)[0], expected)


def block_of(layer: str, **form):
    model = small(layer, **form).eval()
    batch = model.prepare(molecules(9))
    block = model.blocks[0]
    for name, buffer in block.named_buffers():
        if "running" in name:
            buffer.copy_(torch.rand_like(buffer) + 0.5)
    h, edges = torch.randn(9, 8), torch.randn(batch.edge_row.shape[0], 8)
    return block, batch, h, edges, block.layer(h, edges, batch)[0]


def feed_forward(block, h):
    wide, narrow = block.ffn
    return block.ffn_norm(h + narrow(torch.relu(wide(h))))


@pytest.mark.parametrize("layer", ["gcn_edges", "gatedgcn"])
def test_a_block_of_gnn_plus_equals_its_equation(layer):
    block, batch, h, edges, passed = block_of(layer)
    expected = feed_forward(block, block.sum_norm(h + torch.relu(block.layer_norm(passed))))
    torch.testing.assert_close(block(h, edges, batch)[0], expected)


def test_gine_has_no_norm_of_its_own_before_an_ffn():
    block, batch, h, edges, passed = block_of("gine")
    assert block.layer_norm is None
    expected = feed_forward(block, block.sum_norm(h + torch.relu(passed)))
    torch.testing.assert_close(block(h, edges, batch)[0], expected)


def test_a_block_without_ffn_and_residual_sum():
    block, batch, h, edges, passed = block_of("gcn_edges", ffn=False, residual=False, activation="gelu")
    expected = torch.nn.functional.gelu(block.layer_norm(passed))
    torch.testing.assert_close(block(h, edges, batch)[0], expected)


@pytest.mark.parametrize("layer", ["gine", "gatedgcn"])
def test_a_block_of_gps_equals_its_equation(layer):
    block, batch, h, edges, passed = block_of(layer, **GPS)
    attention = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()
    with torch.no_grad():
        attention.in_proj_weight.copy_(block.attention.project.weight)
        attention.in_proj_bias.copy_(block.attention.project.bias)
        attention.out_proj.weight.copy_(block.attention.output.weight)
        attention.out_proj.bias.copy_(block.attention.output.bias)
    attended = attention(h[None], h[None], h[None], need_weights=False)[0][0]
    passed = torch.relu(block.layer_norm(passed)) if layer == "gatedgcn" else passed
    expected = block.sum_norm(h + passed) + block.attention_norm(h + attended)
    torch.testing.assert_close(block(h, edges, batch)[0], feed_forward(block, expected))


def test_the_encoding_is_added_or_has_channels_of_its_own():
    data = molecules(9)
    for own in (0, 3):
        model = small("gine", encoding_channels=own).eval()
        batch = model.prepare(data)
        position = model.position(model.position_norm(batch.node_encoding))
        atoms = model.node_encoder(batch.node_features, 9)
        expected = torch.cat([atoms, position], dim=1) if own else atoms + position
        torch.testing.assert_close(model._stem(batch), expected)


def test_signs_of_eigenvectors_are_drawn_for_each_graph_in_training():
    model, sizes = small("gine", encoding="laplacian", steps=3), [9, 7, 8]
    batch = model.prepare(molecules(*sizes))
    found = set()
    for _ in range(40):
        flipped = with_drawn_signs(batch, 3).split(sizes)
        for own, other in zip(batch.node_encoding.split(sizes), flipped, strict=True):
            signs = (own * other).sum(0).sign()
            assert torch.equal(other, own * signs)
            found.add(tuple(signs.tolist()))
    assert len(found) == 8
    assert not torch.equal(model(batch), model(batch))
    assert torch.equal(model.eval()(batch), model(batch))


def test_gcn_equals_that_of_pyg():
    model, data = small("gcn"), molecules(9)
    batch = model.prepare(data)
    theirs = GCNConv(8, 8).double()
    theirs.load_state_dict(model.blocks[0].layer.layer.state_dict())
    h = torch.randn(9, 8)
    ours, _ = model.blocks[0].layer(h, torch.zeros(batch.edge_row.shape[0], 8), batch)
    torch.testing.assert_close(ours, theirs(h, data.edge_index), rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("layer", "form", "sentence"),
    [
        ("gatv2", {"heads": 3}, r"model.heads is 3, which does not divide model.width = 8"),
        ("gine", {**GPS, "attention_heads": 3}, r"model.attention_heads is 3, which does not divide model.width = 8"),
        (
            "gine",
            {**GPS, "support": "sparse_global"},
            r"does not store the pairs of far nodes.*'global'",
        ),
        ("gine", {"support": 0}, r"no edge lies inside it: message passing needs at least 1 hop"),
        ("gine", {"encoding_channels": 8}, r"leaves none of model.width = 8 to the attributes"),
        ("gine", {"encoding_channels": 3, "node_steps": 0}, r"the encoding has no node part: set model.node_steps"),
        ("gcn", {"edge": AttributeRecipe("constant")}, r"a GCN reads no edge attributes.*choose layer 'gcn_edges'"),
        ("gatedgcn", {"edge": AttributeRecipe("none")}, r"keeps a state on every edge.*set it to 'constant'"),
        ("gatedgcn", {**GPS, "edge": AttributeRecipe("none")}, r"model.edge.kind is 'none'"),
        ("gine", {"attention_dropout": 0.5}, r"attention_dropout is 0.5, but there is no attention"),
        ("gine", {"dropout": 1.5}, r"dropout is 1.5: give less than 1"),
        ("gine", {**GPS, "attention_dropout": -1.0}, r"attention_dropout is -1"),
    ],
)
def test_refusals(layer, form, sentence):
    with pytest.raises(InputError, match=sentence):
        small(layer, **form)
