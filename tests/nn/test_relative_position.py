"""Relative positions as coordinates: every value, where they enter, what they do not depend on, what is refused."""

import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch_geometric.data import Batch, Data

from ckgconv import InputError, recipe
from ckgconv.nn.coordinates import rescaled
from ckgconv.nn.models import build_model
from ckgconv.nn.relative_position import with_relative_positions
from ckgconv.nn.stem import PairStem
from ckgconv.pairs import Encoding
from ckgconv.recipes import RECIPES, with_value

SMALL = ("model.width=8", "model.blocks=2", "model.steps=3", "model.coordinate_features=1")


def model_of(*settings: str, name: str = "mnist"):
    chosen = recipe(name)
    for setting in (*SMALL, *settings):
        chosen = with_value(chosen, setting)
    torch.manual_seed(0)
    return build_model(chosen.model).double()


def image(nodes: int, seed: int) -> Data:
    torch.manual_seed(seed)
    edges = random_edges(nodes, 3 * nodes, seed)
    return Data(
        x=torch.rand(nodes, 1, dtype=torch.double),
        pos=torch.rand(nodes, 2, dtype=torch.double),
        edge_index=edges,
        edge_attr=torch.rand(edges.shape[1], 1, dtype=torch.double),
    )


def test_every_value():
    graphs, encoding = packed((4, random_edges(4, 6, 1)), (3, random_edges(3, 4, 2))), Encoding("rrwp", 2, 0, "global")
    pairs = encoding.pairs(graphs, encoding.coordinates(graphs, torch.float64), torch.float64)
    position = torch.rand(7, 2, dtype=torch.double)
    found = with_relative_positions(pairs, position)
    channels = pairs.coordinates.shape[1]
    torch.testing.assert_close(found.coordinates[:, :channels], pairs.coordinates)
    torch.testing.assert_close(found.rescaled[:, :channels], rescaled(pairs))
    for row, (i, j) in enumerate(zip(pairs.receiver.tolist(), pairs.sender.tolist(), strict=True)):
        x, y = (position[j] - position[i]).tolist()
        expected = torch.tensor([x, y, (x * x + y * y) ** 0.5], dtype=torch.double)
        torch.testing.assert_close(found.coordinates[row, channels:], expected)
        torch.testing.assert_close(found.rescaled[row, channels:], expected)  # without the factor |supp(i)|


def test_the_stem_reads_them_with_their_sinusoids():
    model = model_of("model.relative_positions=true")
    batch = model.prepare(image(6, 0))
    encoder = model.pair_stem.encoder
    read = encoder.scaled(model.pair_stem.placed(batch.pairs, batch.position), batch.degree)
    assert read.shape[1] == encoder.channels == 3 * (model.encoding.channels + 3)
    assert model.step_bytes(1000) > model_of().step_bytes(1000)


def test_a_shift_of_the_picture_changes_nothing_that_they_say():
    """With U = V = 0 and node values without positions, only relative positions are left."""
    model = model_of("model.relative_positions=true").eval()
    torch.nn.init.zeros_(model.pair_stem.position.sender.weight)
    torch.nn.init.zeros_(model.pair_stem.position.receiver.weight)
    model.node_encoder.linear.weight.data[:, 1:] = 0
    here, there, elsewhere = image(6, 0), image(6, 0), image(6, 0)
    there.pos = there.pos + 0.25
    elsewhere.pos = elsewhere.pos.flip(0)
    torch.testing.assert_close(model(there), model(here))
    assert not torch.allclose(model(elsewhere), model(here))


def test_graphs_of_a_batch_do_not_see_each_other():
    model = model_of("model.relative_positions=true").eval()
    graphs = [image(5, 1), image(8, 2)]
    alone = torch.cat([model(graph) for graph in graphs])
    torch.testing.assert_close(model(Batch.from_data_list(graphs)), alone)


@pytest.mark.parametrize(
    ("settings", "name", "sentence"),
    [
        ((), "zinc", r"position_channels is 0: choose graphs whose nodes have positions"),
        (("model.encoding=spd", "model.coordinate_features=0"), "mnist", r"read by a table of learned vectors"),
        (("model.degree_scaler=coordinates",), "mnist", r"degrees are injected into the coordinates"),
        (("model.support=sparse_global",), "mnist", r"Positions differ on every pair"),
    ],
)
def test_refusals(settings, name, sentence):
    with pytest.raises(InputError, match=sentence):
        model_of("model.relative_positions=true", *settings, name=name)


def test_published_networks_have_none():
    assert not any(getattr(make().model, "relative_positions", False) for make in RECIPES.values())
    assert not PairStem(Encoding("rrwp", 2, 0, "global"), 4, position_channels=2).relative_positions
