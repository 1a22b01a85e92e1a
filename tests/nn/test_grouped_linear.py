import torch

from ckgconv.nn.grouped_linear import GroupedLinear


def test_every_group_is_a_linear_map_of_its_own():
    linear, x = GroupedLinear(3, 2, groups=4), torch.randn(5, 3)
    for group in range(4):
        torch.testing.assert_close(linear(x, group), x @ linear.weight[group].T + linear.bias[group])
    assert repr(linear) == "GroupedLinear(3 → 2, groups=4)"
