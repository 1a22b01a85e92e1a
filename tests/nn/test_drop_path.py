"""DropPath: the equation with given draws, its probabilities, padding, evaluation, refusals."""

import copy
from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules
from small_data import padded_and_plain

from ckgconv import InputError
from ckgconv.nn.drop_path import DropPath, all_paths, drop_probability
from ckgconv.nn.models import build_model
from ckgconv.recipe import GRITRecipe, HeadRecipe
from ckgconv.recipes import recipe, with_value

pytestmark = pytest.mark.usefixtures("double")
CKGCN = small_recipe("zinc", "global", "rrwp")
GRIT = GRITRecipe(
    width=8, node=CKGCN.node, edge=CKGCN.edge, head=HeadRecipe("pyramid", "sum", 2, 1), steps=4, blocks=2, heads=4
)
both = pytest.mark.parametrize("small", [CKGCN, GRIT], ids=["ckgcn", "grit"])


def network(small, **values):
    torch.manual_seed(1)
    model = build_model(replace(small, **values)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
    return model


def fixed(monkeypatch, *kept):
    """Draws of the blocks, one after the other and again from the first."""
    drawn = []

    def draw(path, graphs, device):
        row = torch.tensor(kept[len(drawn) % len(kept)])
        drawn.append(graphs)
        return torch.nn.functional.pad(row, (0, graphs - len(row))).bool()

    monkeypatch.setattr(DropPath, "draw", draw)
    return drawn


def test_the_equation_of_a_block(monkeypatch):
    """Of a graph that is dropped, only the norms are left; of the others both branches are twice as large."""
    model = network(CKGCN, drop_path=0.5).train()
    fixed(monkeypatch, [1, 0, 1])
    batch = model.prepare(molecules(4, 5, 6))
    block, h = model.blocks[1], torch.randn(15, 8)
    (psi, _) = model.kernel(model._pair_features(batch), batch.pairs)
    factor = torch.tensor([2.0] * 4 + [0.0] * 5 + [2.0] * 6).unsqueeze(-1)
    branch = block.convolution(h, psi, batch.pairs, batch.degree)
    wanted = copy.deepcopy(block.convolution_norm)(h + factor * branch)
    branch = block.ffn_out(torch.nn.functional.gelu(block.ffn_in(wanted)))
    wanted = copy.deepcopy(block.ffn_norm)(wanted + factor * branch)
    found = block(h, psi, batch.pairs, batch.degree, None, block.drop_path(batch))
    torch.testing.assert_close(found, wanted, rtol=1e-12, atol=1e-12)


@both
def test_nothing_is_dropped_where_all_is_kept_or_evaluated(small, monkeypatch):
    data = molecules(4, 5, 6)
    plain, dropping = network(small), network(small, drop_path=0.5)
    torch.testing.assert_close(dropping.eval()(data), plain.eval()(data), rtol=0, atol=0)
    for path in (part for part in dropping.modules() if isinstance(part, DropPath)):
        path.probability = 0.0
    torch.testing.assert_close(dropping.train()(data), plain.train()(data), rtol=0, atol=0)


@both
def test_blocks_are_dropped_for_each_graph(small, monkeypatch):
    drawn = fixed(monkeypatch, [1, 0], [0, 1])
    model = network(small, drop_path=0.5).train()
    data = molecules(5, 6)
    first = model.node_states(model.prepare(data))
    assert drawn == [3, 3]
    fixed(monkeypatch, [1, 0], [1, 1])
    assert not torch.allclose(model.node_states(model.prepare(data)), first)


@both
def test_padding_changes_nothing(small, monkeypatch):
    fixed(monkeypatch, [1, 0, 1], [0, 1, 1])
    model = network(small, drop_path=0.4)
    results = []
    for batch in padded_and_plain(model, torch.tensor([2, 0, 3])):
        copied = copy.deepcopy(model).train()
        prediction = copied(batch)[:3]
        gradients = torch.autograd.grad(prediction.sin().sum(), list(copied.parameters()), allow_unused=True)
        results.append([prediction, *(each for each in gradients if each is not None), *copied.buffers()])
    for padded, plain in zip(*results, strict=True):
        torch.testing.assert_close(padded, plain, rtol=1e-9, atol=1e-9)


def test_probabilities_grow_from_block_to_block():
    assert [drop_probability(0.4, layer, 4) for layer in range(4)] == pytest.approx([0.1, 0.2, 0.3, 0.4])
    model = network(CKGCN, drop_path=0.4)
    assert [block.drop_path.probability for block in model.blocks] == pytest.approx([0.2, 0.4])
    assert drop_probability(0.3, 0, 1) == pytest.approx(0.3)


def test_the_factors_of_all_blocks(monkeypatch):
    model = network(CKGCN, drop_path=0.4).train()
    batch = model.prepare(molecules(2, 3))
    paths = [DropPath(0.5), DropPath(0.0), DropPath(0.2)]
    fixed(monkeypatch, [1, 0], [0, 1])
    wanted = torch.tensor([[2.0, 2, 0, 0, 0], [1, 1, 1, 1, 1], [0, 0, 1.25, 1.25, 1.25]])
    torch.testing.assert_close(all_paths(paths, batch), wanted)
    assert all_paths(paths[1:2], batch) is None
    assert all_paths([path.eval() for path in paths], batch) is None


def test_the_share_that_is_kept():
    torch.manual_seed(0)
    path = DropPath(0.25)
    kept = path.draw(20_000, torch.device("cpu")).double()
    assert float(kept.mean()) == pytest.approx(0.75, abs=0.02)
    assert "0.25" in repr(path)
    assert not path.eval().drops


def test_refused():
    with pytest.raises(InputError, match=r"model.drop_path is 1: give less than 1"):
        with_value(recipe("zinc"), "model.drop_path=1")
    with pytest.raises(InputError, match="drop_path"):
        DropPath(1.5)
