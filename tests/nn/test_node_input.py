"""Degree and order as node inputs: values, padding, large graphs."""

import math
from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules
from small_data import padded_and_plain

from ckgconv import InputError, recipe
from ckgconv.engine.large_graph import large_graph
from ckgconv.nn.models import build_model
from ckgconv.nn.node_input import node_channels, node_input, size_features
from ckgconv.recipe import HeadRecipe

pytestmark = pytest.mark.usefixtures("double")


def test_degree_and_order_of_every_node():
    data = molecules(4, 1, 6)
    model = build_model(replace(small_recipe("zinc", "global", "rrwp"), size_features=True)).double()
    batch = model.prepare(data)
    found = size_features(batch)
    for node in range(11):
        degree = int((data.edge_index[1] == node).sum())
        order = (4, 1, 6)[int(data.batch[node])]
        assert found[node].tolist() == pytest.approx([math.log(1 + degree), math.log(order)], abs=1e-12)
    encoded = node_input(batch, True)
    assert encoded.shape[1] == node_channels(model.encoding.node_channels, True) == model.node_stem.mix.channels
    assert torch.equal(encoded[:, -2:], found)
    assert node_input(batch, False) is batch.node_encoding


def test_padding_changes_nothing():
    model = build_model(replace(small_recipe("zinc", "global", "rrwp"), size_features=True)).double()
    wide, plain = padded_and_plain(model, torch.tensor([2, 0, 3]))
    rows = len(plain.degree)
    torch.testing.assert_close(size_features(wide)[:rows], size_features(plain))
    assert torch.isfinite(size_features(wide)).all()


def test_a_sample_of_a_large_graph_does_not_know_the_order():
    chosen = replace(recipe("zinc").model, size_features=True, width=8, head=HeadRecipe("pyramid", "none", 2, 1))
    with pytest.raises(InputError, match=r"size_features is true, .* set it to false"):
        large_graph(build_model(chosen).double(), molecules(5), torch.device("cpu"))
