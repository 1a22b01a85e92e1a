"""Batches of static capacity against plain ones: the same network output, coordinates stored or computed."""

from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules

from ckgconv import CKGCN
from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.batch import StoredCoordinates, StoredPairs, padded_batch, store_pairs
from ckgconv.data import from_pyg
from ckgconv.pe import COORDINATES

pytestmark = pytest.mark.usefixtures("double")

SIZES = (5, 8, 11)
CAPACITY = Capacity(graphs=4, nodes=28, pairs=sum(size**2 for size in SIZES) + 7, edges=70, largest=11)


def sources(model, data):
    """What a data set stores for a model, from two eager batches."""
    return store_pairs(model.prepare(data.batch(part)) for part in (torch.arange(2), torch.arange(2, 3)))


@pytest.mark.parametrize("numbers", [[2, 0, 1], [1, 2], [0]])
@pytest.mark.parametrize("support", ["global", 2])
@pytest.mark.parametrize("encoding", COORDINATES)
def test_stored_coordinates(encoding, support, numbers):
    data = from_pyg(molecules(*SIZES).to_data_list())
    model = CKGCN.from_recipe(replace(small_recipe("zinc", support, "rrwp"), encoding=encoding)).double().eval()
    stored = sources(model, data)
    assert isinstance(stored, StoredCoordinates if support == "global" else StoredPairs)
    chosen = torch.tensor(numbers + [-1] * (CAPACITY.graphs - len(numbers)))
    padded, _ = padded_batch(data, stored, chosen, CAPACITY, model.encoding, torch.float64)
    plain = model.prepare(data.batch(torch.tensor(numbers)))
    torch.testing.assert_close(model(padded)[: len(numbers)], model(plain), rtol=0, atol=1e-11)
    kept = plain.pairs.num_pairs
    assert int(padded.pairs.filled) == kept
    for name in ("receiver", "sender"):
        assert torch.equal(getattr(padded.pairs, name)[:kept], getattr(plain.pairs, name)), name
    # Products of matrices round by the size of the largest graph of a batch.
    torch.testing.assert_close(padded.pairs.coordinates[:kept], plain.pairs.coordinates, rtol=0, atol=1e-12)


def test_supports_that_reach_every_node_are_whole_graphs():
    data = from_pyg(molecules(*SIZES).to_data_list())
    for support, kind in ((12, StoredCoordinates), ("sparse_global", StoredPairs)):
        model = CKGCN.from_recipe(small_recipe("zinc", support, "rrwp")).double()
        assert isinstance(sources(model, data), kind)
