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
    with pytest.raises(InputError, match=r"pair_encoding has shape .* steps"):
        model(AddRRWP(4)(molecules(5)))
    with pytest.raises(InputError, match="sparse_global"):
        model(AddSparseRRWP(5)(molecules(30)))
    with pytest.raises(InputError, match="AddRWSE"):
        CKGCN.from_recipe(small_recipe("zinc", "global", "rd")).double()(AddRD()(molecules(5)))
    shuffled = AddRRWP(5)(molecules(5))
    shuffled.pair_index = shuffled.pair_index.flip(1)
    with pytest.raises(InputError, match="pair_index is not sorted"):
        model(shuffled)


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
