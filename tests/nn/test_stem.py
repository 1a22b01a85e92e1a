import pytest
import torch
from graphs_for_tests import packed, random_edges
from torch.nn import functional as F

from ckgconv import InputError
from ckgconv.nn.stem import Edges, Mix, NodeStem, PairStem
from ckgconv.pairs import Encoding

pytestmark = pytest.mark.usefixtures("double")

GRAPHS = packed((6, random_edges(6, 7, 0)))
DEGREE = GRAPHS.degree(torch.float64)


def test_node_stem_is_the_equation():
    stem, attributes, encoding = NodeStem(3, 5), torch.randn(8, 5), torch.rand(8, 3)
    normalised = F.batch_norm(encoding, None, None, training=True)
    expected = F.batch_norm(attributes + stem.mix.projection(normalised), None, None, training=True)
    torch.testing.assert_close(stem(attributes, encoding), expected)


def test_parallel_edges_add_up_and_positions_reach_every_pair():
    encoding = Encoding("rrwp", 2, 0, "global")
    stem = PairStem(encoding, 4, position_channels=2)
    pairs = encoding.pairs(GRAPHS, encoding.coordinates(GRAPHS, torch.float64), torch.float64)
    row, attributes, position = torch.tensor([3, 3, 7]), torch.randn(3, 4), torch.rand(6, 2)
    on_pairs = torch.zeros(36, 4)
    on_pairs[3] = attributes[0] + attributes[1]
    on_pairs[7] = attributes[2]
    encoded = stem.mix.projection(stem.encoder(pairs, DEGREE))
    moved = stem.position.sender(position)[pairs.sender] + stem.position.receiver(position)[pairs.receiver]
    expected = F.batch_norm(encoded + on_pairs + moved, None, None, training=True)
    torch.testing.assert_close(stem(pairs, DEGREE, Edges(row, attributes), position), expected)


def test_concatenation_is_literal():
    mix = Mix(4, 3, "concatenate")
    attributes, encoded = torch.randn(5, 4), torch.randn(5, 3)
    joined = torch.cat([attributes, encoded], dim=1) @ mix.projection.weight.T
    torch.testing.assert_close(mix(attributes, encoded), joined)
    assert tuple(Mix(4, 4, "concatenate", embedded=True).projection.weight.shape) == (4, 8)
    assert not list(Mix(4, 4, "sum", embedded=True).parameters())
    with pytest.raises(InputError, match="combine is 'product'"):
        Mix(4, 3, "product")


def test_weighted_rows_are_projected_alike_with_or_without_hooks():
    """Covers `ckgconv.nn.hooks`: a hook sees the projection, whose shortcut for weighted rows computes the same."""
    mix, seen = Mix(6, 3, "sum"), []
    mix.reset_parameters(torch.nn.init.xavier_normal_)
    values = torch.randn(20, 3, requires_grad=True)
    results = []
    for run in (mix.projected_quickly, mix.projected):
        y = run(values)
        results.append([y, *torch.autograd.grad(y.sin().sum(), [values, mix.projection.weight])])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)
    mix.projection.register_forward_hook(lambda module, inputs, output: seen.append(output))
    mix.projected_quickly(values)
    assert len(seen) == 1
