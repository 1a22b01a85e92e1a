"""GRIT beyond its published setting: supports, coordinates, padding; and the recipes of `ckgconv.recipes.grit`."""

from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecules

from ckgconv import InputError, recipe
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


def test_refusals():
    with pytest.raises(InputError, match="no zero row can stand"):
        small(support="sparse_global")
    with pytest.raises(InputError, match=r"model.heads is 3, which does not divide model.width = 16"):
        PairAttention(16, 3)
    with pytest.raises(InputError, match="attention_dropout is 2"):
        small(attention_dropout=2)
