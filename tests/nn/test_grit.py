"""GRIT beyond its published setting: supports, coordinates, padding; and the recipes of `ckgconv.recipes.grit`."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules
from small_data import padded_and_plain, small_dataset

from ckgconv import InputError, recipe, train
from ckgconv.nn.attention import PairAttention
from ckgconv.nn.grit import GRIT
from ckgconv.pe import COORDINATES

pytestmark = pytest.mark.usefixtures("double")


def small(**changed) -> GRIT:
    model = replace(recipe("zinc-grit").model, width=16, blocks=2, heads=4, steps=4, node_steps=5, **changed)
    torch.manual_seed(0)
    return GRIT(model).double()


@pytest.mark.parametrize("encoding", sorted(COORDINATES))
@pytest.mark.parametrize("support", ["global", 2])
def test_every_coordinate_and_support_trains(encoding, support):
    model = small(encoding=encoding, support=support).train()
    model(molecules(5, 9, 1)).sum().backward()
    without = [name for name, parameter in model.named_parameters() if parameter.grad is None]
    assert all(name.startswith("blocks.1.pair_") for name in without)
    other = model.eval()(molecules(5, 9, 1))
    assert torch.isfinite(other).all()


def test_renumbering_changes_nothing():
    model, data = small(support=3).eval(), molecules(11)
    order = torch.randperm(11, generator=torch.Generator().manual_seed(1))
    moved = data.clone()
    moved.x, moved.edge_index = data.x[order], order.argsort()[data.edge_index]
    torch.testing.assert_close(model(moved), model(data), rtol=0, atol=1e-12)


@pytest.mark.parametrize("support", ["global", 2])
def test_padding_changes_nothing(support):
    model = small(support=support, attention_dropout=0.0)
    wide, batch = padded_and_plain(model, torch.tensor([2, 0, 3]))
    torch.testing.assert_close(model(wide)[:3], model(batch), rtol=0, atol=1e-12)
    torch.testing.assert_close(model.eval()(wide)[:3], model.eval()(batch), rtol=0, atol=1e-12)


def test_refusals():
    with pytest.raises(InputError, match="no zero row can stand"):
        small(support="sparse_global")
    with pytest.raises(InputError, match=r"model.heads is 3, which does not divide model.width = 16"):
        PairAttention(16, 3)
    with pytest.raises(InputError, match="attention_dropout is 2"):
        small(attention_dropout=2)


def test_it_trains_from_its_recipe():
    chosen = recipe("zinc-grit")
    model = replace(chosen.model, width=8, blocks=1, heads=2, steps=3)
    training = replace(chosen.training, epochs=2, warmup_epochs=0, batch_size=6)
    run = train(replace(chosen, model=model, training=training), data=small_dataset(recipe("zinc")), device="cpu")
    assert run.record.epochs[1].train_loss < run.record.epochs[0].train_loss * 1.5
