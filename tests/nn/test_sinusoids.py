"""Sinusoidal features of coordinates: the formula term by term, where they enter, what is refused."""

import math
from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules
from hypothesis import given
from hypothesis import strategies as st

from ckgconv import InputError
from ckgconv.nn.coordinates import NormalisedEncoder, RawEncoder, rescaled
from ckgconv.nn.models import build_model
from ckgconv.nn.sinusoids import sinusoids
from ckgconv.recipe import GRITRecipe
from ckgconv.recipes import recipe, with_value

pytestmark = pytest.mark.usefixtures("double")


@given(st.integers(0, 6), st.integers(1, 4), st.integers(1, 4), st.integers(0, 2**31))
def test_every_term(rows, channels, frequencies, seed):
    torch.manual_seed(seed)
    values = torch.rand(rows, channels)
    found = sinusoids(values, frequencies)
    assert found.shape == (rows, 2 * channels * frequencies)
    half = channels * frequencies
    for row in range(rows):
        for channel in range(channels):
            for level in range(frequencies):
                angle = 2**level * math.pi * float(values[row, channel])
                place = channel * frequencies + level
                assert float(found[row, place]) == pytest.approx(math.sin(angle), abs=1e-12)
                assert float(found[row, half + place]) == pytest.approx(math.cos(angle), abs=1e-12)


@pytest.mark.parametrize("support", ["global", "sparse_global", 2])
def test_they_are_of_the_probabilities_themselves(support):
    model = build_model(replace(small_recipe("zinc", support, "rrwp"), coordinate_features=2)).double()
    encoder = model.pair_stem.encoder
    assert isinstance(encoder, NormalisedEncoder)
    batch = model.prepare(molecules(5, 7))
    channels = model.encoding.channels
    found = encoder.scaled(batch.pairs, batch.degree)
    assert found.shape[1] == encoder.channels == 5 * channels
    torch.testing.assert_close(found[:, :channels], rescaled(batch.pairs))
    torch.testing.assert_close(found[:, channels:], sinusoids(batch.pairs.coordinates, 2))
    assert any(each is batch.pairs.coordinates for each in encoder.reads(batch.pairs, batch.degree))


def test_raw_coordinates_have_them_too():
    encoder = RawEncoder(6, frequencies=3)
    model = build_model(replace(small_recipe("zinc", "global", "pair_rwse"), coordinate_features=3)).double()
    batch = model.prepare(molecules(5, 7))
    found = model.pair_stem.encoder(batch.pairs, batch.degree)
    assert encoder.channels == 42
    torch.testing.assert_close(found[:, batch.pairs.coordinates.shape[1] :], sinusoids(batch.pairs.coordinates, 3))


def test_sparse_and_global_support_agree():
    torch.manual_seed(0)
    dense = build_model(replace(small_recipe("zinc", "global", "rrwp"), coordinate_features=2)).double()
    sparse = build_model(replace(small_recipe("zinc", "sparse_global", "rrwp"), coordinate_features=2)).double()
    sparse.load_state_dict(dense.state_dict())
    data = molecules(9, 12)
    torch.testing.assert_close(sparse.train()(data), dense.train()(data), rtol=1e-9, atol=1e-9)
    torch.testing.assert_close(sparse.eval()(data), dense.eval()(data), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("encoding", ["spd", "rd"])
def test_learned_vectors_have_no_sinusoids(encoding):
    small = replace(small_recipe("zinc", "global", encoding), coordinate_features=2)
    names = ("width", "node", "edge", "head", "encoding", "steps", "support", "coordinate_features")
    other = GRITRecipe(**{name: getattr(small, name) for name in names}, blocks=1, heads=1)
    for refused in (small, other):
        with pytest.raises(InputError, match=r"coordinate_features is 2, .* set it to 0, or choose 'rrwp'"):
            build_model(refused)


def test_a_negative_number_is_refused():
    with pytest.raises(InputError, match=r"model.coordinate_features is -1: give at least 0"):
        with_value(recipe("zinc"), "model.coordinate_features=-1")
