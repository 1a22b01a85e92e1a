"""Graphormer equals its equation; covers `ckgconv.recipes.graphormer`."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from torch.nn import functional as F

from ckgconv import InputError, recipe
from ckgconv.nn.graphormer import HIGHEST_DEGREE, Graphormer
from ckgconv.pe import COORDINATES

pytestmark = pytest.mark.usefixtures("double")


def small(**changed) -> Graphormer:
    values = {"width": 8, "blocks": 2, "heads": 2, "steps": 4, "dropout": 0.0, "attention_dropout": 0.0}
    model = Graphormer(replace(recipe("zinc-graphormer").model, **{**values, **changed}))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def test_it_equals_its_equation():
    model, data = small(), molecules(7)
    batch = model.prepare(data)
    distance = batch.pairs.coordinates.view(7, 7)
    bias = model.distance.encoder.table.weight[distance]
    for column, (sender, receiver) in enumerate(data.edge_index.T.tolist()):
        bias[receiver, sender] += model.edge_encoder.tables[0].weight[data.edge_attr[column, 0]]
    h = model.node_encoder.tables[0].weight[data.x[:, 0]] + model.degree.weight[batch.degree.long()]
    for block in model.blocks:
        projected = block.attention.project(block.attention_norm(h))
        query, key, value = (part.view(7, 2, 4) for part in projected.chunk(3, -1))
        scores = torch.einsum("ihc,jhc->ijh", query, key) / 2 + bias
        mixed = torch.einsum("ijh,jhc->ihc", scores.softmax(1), value).reshape(7, 8)
        h = h + block.attention.output(mixed)
        h = h + block.ffn_out(F.gelu(block.ffn_in(block.ffn_norm(h))))
    torch.testing.assert_close(model(data), model.head(model.norm(h).sum(0, keepdim=True)))


@pytest.mark.parametrize("encoding", sorted(COORDINATES))
def test_every_coordinate_trains(encoding):
    model = small(encoding=encoding, dropout=0.1, attention_dropout=0.1).train()
    model(molecules(5, 9, 1)).sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())


def test_high_degrees_share_a_vector():
    nodes = HIGHEST_DEGREE + 6
    hub = torch.stack([torch.zeros(nodes - 1, dtype=torch.int64), torch.arange(1, nodes)])
    data = molecules(nodes)
    data.edge_index, data.edge_attr = torch.cat([hub, hub.flip(0)], 1), torch.ones(2 * nodes - 2, 1).long()
    assert torch.isfinite(small()(data)).all()


def test_published_shape():
    chosen = recipe("zinc-graphormer")
    assert sum(parameter.numel() for parameter in Graphormer(chosen.model).parameters()) == 481_729
    assert chosen.paper_test == (0.122,)
    assert (chosen.training.batch_size, chosen.training.clip_norm, chosen.training.weight_decay) == (256, 5.0, 0.01)


def test_refusals():
    with pytest.raises(InputError, match="does not store the pairs of far nodes"):
        small(encoding="rrwp", support="sparse_global")
    with pytest.raises(InputError, match=r"model.heads is 3, which does not divide model.width = 8"):
        small(heads=3)
