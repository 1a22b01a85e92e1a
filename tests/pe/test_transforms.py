"""Covers `ckgconv.pairs.precomputed`."""

from copy import copy
from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules
from torch_geometric.data import Batch
from torch_geometric.transforms import Compose

from ckgconv import CKGCN, InputError
from ckgconv.pe import AddPairRWSE, AddRD, AddRRWP, AddRWSE, AddSparseRRWP, AddSPD

pytestmark = pytest.mark.usefixtures("double")

CASES = {
    "rrwp": ("global", AddRRWP(5)),
    "sparse": ("sparse_global", AddSparseRRWP(5)),
    "hops": (2, AddRRWP(5)),
    "spd": ("global", Compose([AddSPD(21), AddRWSE(20)])),
    "rd": ("global", Compose([AddRD(), AddRWSE(20)])),
    "pair_rwse": ("global", Compose([AddPairRWSE(20), AddRWSE(20)])),
}


@pytest.mark.parametrize("name", CASES)
def test_precomputing_each_graph_changes_nothing(name):
    support, transform = CASES[name]
    encoding = name if name in ("spd", "rd", "pair_rwse") else "rrwp"
    model = CKGCN.from_recipe(small_recipe("zinc", support, encoding)).double().eval()
    data = molecules(4, 9, 1, 13)
    prepared = Batch.from_data_list([transform(graph) for graph in data.to_data_list()])
    torch.testing.assert_close(model(prepared), model(data), rtol=0, atol=1e-12)


def test_wrong_steps_and_missing_parts_are_refused():
    model = CKGCN.from_recipe(small_recipe("zinc", "global", "rrwp")).double()
    with pytest.raises(InputError, match=r"precomputed as 'rrwp 4 published .*'.* 'rrwp 5 published source_to_target'"):
        model(AddRRWP(4)(molecules(5)))
    with pytest.raises(InputError, match="sparse_global"):
        model(AddSparseRRWP(5)(molecules(30)))
    with pytest.raises(InputError, match="AddRWSE"):
        CKGCN.from_recipe(small_recipe("zinc", "global", "rd")).double()(AddRD()(molecules(5)))
    other = CKGCN.from_recipe(small_recipe("zinc", "global", "spd")).double()
    with pytest.raises(InputError, match="precomputed as 'spd 10 source_to_target'"):
        other(AddSPD(10)(molecules(5)))
    by_hand = AddRRWP(4)(molecules(5))
    del by_hand.pair_source
    with pytest.raises(InputError, match="pair_encoding has shape"):
        model(by_hand)
    lost = AddRRWP(5)(molecules(5))
    del lost.pair_encoding
    with pytest.raises(InputError, match="no pair_encoding"):
        model(lost)
    broken = AddRRWP(5)(molecules(5))
    broken.pair_encoding[0] = torch.nan
    with pytest.raises(InputError, match="nan"):
        model(broken)
    partial = AddSPD(21)(AddRWSE(20)(molecules(5)))
    partial.pair_index, partial.pair_encoding = partial.pair_index[:, 1:], partial.pair_encoding[1:]
    with pytest.raises(InputError, match="not all 25"):
        other(partial)
    shuffled = AddRRWP(5)(molecules(5))
    shuffled.pair_index = shuffled.pair_index.flip(1)
    with pytest.raises(InputError, match="pair_index is not sorted"):
        model(shuffled)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_precomputing_directed_graphs(name, flow):
    support, transform = CASES[name]
    encoding = name if name in ("spd", "rd", "pair_rwse") else "rrwp"
    recipe = replace(small_recipe("zinc", support, encoding), flow=flow)
    model = CKGCN.from_recipe(recipe).double().eval()
    data = molecules(9, 13)
    one_way = data.edge_index[0] < data.edge_index[1]
    data.edge_index, data.edge_attr = data.edge_index[:, one_way], data.edge_attr[one_way]
    prepared = data.clone()
    for each in map(copy, getattr(transform, "transforms", [transform])):
        each.flow = flow
        prepared = each(prepared)
    torch.testing.assert_close(model(prepared), model(data), rtol=0, atol=1e-12)
    other = replace(recipe, flow=({"source_to_target", "target_to_source"} - {flow}).pop())
    with pytest.raises(InputError, match=f"{flow}'.*and flow"):
        CKGCN.from_recipe(other).double()(prepared)


def test_repr():
    transforms = [AddRRWP(5), AddSparseRRWP(5, "paper"), AddRWSE(3), AddPairRWSE(4), AddSPD(6), AddRD()]
    assert [repr(transform) for transform in transforms] == [
        "AddRRWP(steps=5, counting='published')",
        "AddSparseRRWP(steps=5, counting='paper')",
        "AddRWSE(steps=3)",
        "AddPairRWSE(steps=4)",
        "AddSPD(max_distance=6)",
        "AddRD()",
    ]
