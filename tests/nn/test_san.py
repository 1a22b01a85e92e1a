"""SAN equals its equation; covers `ckgconv.nn.spectral_encoder` and `ckgconv.recipes.san`."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from torch import nn
from torch_geometric.data import Data

from ckgconv import InputError, recipe
from ckgconv.nn.san import SAN
from ckgconv.nn.spectral_encoder import HIDDEN, FrequencyLayer, SpectralEncoder
from ckgconv.recipe import AttributeRecipe

pytestmark = pytest.mark.usefixtures("double")

# The smallest tree without symmetry: its eigenvalues are distinct.
LEGS = torch.tensor([[0, 0, 2, 0, 4, 5], [1, 2, 3, 4, 5, 6]])


def small(**changed) -> SAN:
    values = {
        "width": 8,
        "blocks": 2,
        "heads": 2,
        "steps": 3,
        "encoding_channels": 4,
        "encoding_heads": 2,
        "gamma": 0.3,
    }
    model = SAN(replace(recipe("zinc-san").model, **{**values, **changed}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def softmax_where(scores, chosen):
    powers = scores.clamp(-5, 5).exp() * chosen.unsqueeze(-1)
    return powers / (powers.sum(1, keepdim=True) + 1e-6)


def test_it_equals_its_equation():
    model, data = small().eval(), molecules(7)
    batch = model.prepare(data)
    attributes = torch.zeros(7, 7, 8)
    joined = torch.zeros(7, 7)
    for column, (sender, receiver) in enumerate(data.edge_index.T.tolist()):
        attributes[receiver, sender] += model.edge_encoder.tables[0].weight[data.edge_attr[column, 0]]
        joined[receiver, sender] = 1
    place = model.spectral_encoder(batch.node_encoding, torch.full((7,), 6))
    h = torch.cat([model.node_encoder.tables[0].weight[data.x[:, 0]], place], dim=-1)
    for block in model.blocks:
        attention = block.attention
        parts = (part.view(7, 2, 4) for part in attention.project(h).chunk(5, -1))
        query, key, other_query, other_key, value = parts
        edge, other = attention.edge(attributes).view(7, 7, 2, 4), attention.other(model.other_pairs.weight).view(2, 4)
        near = softmax_where(torch.einsum("ihc,jhc,ijhc->ijh", query, key, edge) / 2, joined)
        far = softmax_where(torch.einsum("ihc,jhc,hc->ijh", other_query, other_key, other) / 2, 1 - joined)
        mixed = torch.einsum("ijh,jhc->ihc", near / 1.3 + far * 0.3 / 1.3, value).reshape(7, 8)
        h = block.attention_norm(h + block.projection(mixed))
        h = block.ffn_norm(h + block.ffn_out(torch.relu(block.ffn_in(h))))
    torch.testing.assert_close(model.node_states(batch), h)
    torch.testing.assert_close(model(data), model.head(h.sum(0, keepdim=True)))


def test_the_transformer_of_frequencies_is_that_of_torch():
    ours, torchs = FrequencyLayer(8, 4), nn.TransformerEncoderLayer(8, 4, HIDDEN, dropout=0.0, batch_first=True)
    names = {
        "project": torchs.self_attn.in_proj_weight,
        "output": torchs.self_attn.out_proj.weight,
        "ffn_in": torchs.linear1.weight,
        "ffn_out": torchs.linear2.weight,
    }
    with torch.no_grad():
        for name, weight in names.items():
            getattr(ours, name).weight.copy_(weight)
            nn.init.zeros_(getattr(ours, name).bias)
        for bias in (
            torchs.self_attn.in_proj_bias,
            torchs.self_attn.out_proj.bias,
            torchs.linear1.bias,
            torchs.linear2.bias,
        ):
            nn.init.zeros_(bias)
    tokens, there = torch.randn(5, 6, 8), torch.arange(6) < torch.tensor([6, 4, 1, 3, 6]).unsqueeze(-1)
    expected = torchs(tokens, src_key_padding_mask=~there)
    torch.testing.assert_close(ours(tokens, there)[there], expected[there])


def test_eigenvectors_that_a_graph_lacks_are_not_read():
    encoder, present = SpectralEncoder(4, 2, 2), torch.tensor([2, 0])
    spectrum = torch.randn(2, 10)
    other = spectrum.clone()
    other[:, [2, 3, 4, 7, 8, 9]] += 1
    torch.testing.assert_close(encoder(other, present)[0], encoder(spectrum, present)[0])
    assert (encoder(spectrum, present)[1] == 0).all()


def test_the_numbering_of_nodes_does_not_matter_where_eigenvalues_differ():
    model, order = small().eval(), torch.tensor([3, 0, 6, 4, 1, 5, 2])
    edges, x, attributes = torch.cat([LEGS, LEGS.flip(0)], 1), torch.arange(7).unsqueeze(1), torch.ones(12, 1).long()
    given = model.prepare(Data(x=x, edge_index=edges, edge_attr=attributes))
    moved = model.prepare(Data(x=x[order], edge_index=order.argsort()[edges], edge_attr=attributes))
    torch.testing.assert_close(model.node_states(moved), model.node_states(given)[order])


def test_signs_are_drawn_in_training_and_eigenvalues_have_none():
    model, data = small().train(), molecules(7)
    batch = model.prepare(data)
    assert len({model.node_states(batch)[0, 0].item() for _ in range(8)}) > 1
    assert (batch.node_encoding[:, 3:] > 0).all()
    alone = model.eval().node_states(batch)
    turned = replace(batch, node_encoding=batch.node_encoding * torch.tensor([-1, 1, 1, 1, 1, 1]))
    assert not torch.allclose(model.node_states(turned), alone)


@pytest.mark.parametrize("edges", ["none", "all"])
def test_nodes_without_edges_and_nodes_that_are_joined_to_all(edges):
    model = small()
    index = torch.cartesian_prod(torch.arange(4), torch.arange(4)).T if edges == "all" else torch.zeros(2, 0).long()
    data = Data(x=torch.zeros(4, 1).long(), edge_index=index, edge_attr=torch.ones(index.shape[1], 1).long())
    prediction = model.eval()(data)
    assert torch.isfinite(prediction).all()
    prediction.sum().backward()
    assert all(torch.isfinite(each.grad).all() for each in model.parameters() if each.grad is not None)


def test_published_shape():
    chosen = recipe("zinc-san")
    model, training = chosen.model, chosen.training
    assert (model.blocks, model.width, model.heads, model.steps, model.gamma) == (10, 56, 8, 10, 1e-5)
    assert (model.encoding_channels, model.encoding_layers, model.encoding_heads) == (8, 2, 4)
    assert (training.optimizer, training.learning_rate) == ("adam", 7e-4)
    assert (training.epochs, training.batch_size) == (1000, 32)
    assert sum(parameter.numel() for parameter in SAN.from_recipe("zinc-san").parameters()) == 454_417


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"heads": 3}, "model.heads is 3, which does not divide model.width = 8: choose a divisor"),
        ({"encoding_heads": 3}, "model.encoding_heads is 3, which does not divide model.encoding_channels = 4"),
        ({"encoding_channels": 8}, "leaves none of model.width = 8 to the attributes"),
        ({"encoding": "laplacian"}, "reads eigenvectors with their eigenvalues: set it to 'spectrum'"),
        ({"edge": AttributeRecipe("none")}, "products with attributes of edges: set it to 'constant'"),
        ({"gamma": 0.0}, "gamma is 0: give more than 0"),
    ],
)
def test_refusals(changed, sentence):
    with pytest.raises(InputError, match=sentence):
        small(**changed)


def test_a_sparse_global_support_is_refused():
    with pytest.raises(InputError, match="choose support 'global' or a number of hops"):
        small(support="sparse_global")
