import pytest
import torch

from ckgconv import InputError
from ckgconv.nn.encoders import ConstantEncoder, LinearEncoder, TypeEncoder


def test_types_are_summed_over_the_columns():
    encoder = TypeEncoder((3, 5), 4)
    types = torch.tensor([[0, 4], [2, 1]])
    expected = encoder.tables[0].weight[types[:, 0]] + encoder.tables[1].weight[types[:, 1]]
    torch.testing.assert_close(encoder(types, 2), expected)
    bound = (6 / (500 + 40)) ** 0.5
    assert TypeEncoder((500,), 40, "xavier").tables[0].weight.abs().max() <= bound


def test_constant_is_one_vector_for_every_row():
    encoder = ConstantEncoder(4)
    assert torch.equal(encoder(None, 3), encoder.vector.expand(3, 4))
    encoder.check("edge_attr", None, 3)


def test_checks_name_what_is_wrong():
    with pytest.raises(InputError, match="data has no edge_attr: the model embeds 2 column"):
        TypeEncoder((3, 5), 4).check("edge_attr", None, 2)
    with pytest.raises(InputError, match=r"x\[:, 1\] contains 5"):
        TypeEncoder((3, 5), 4).check("x", torch.tensor([[0, 5]]), 1)
    with pytest.raises(InputError, match="data has no x: the model reads 2 column"):
        LinearEncoder(2, 4).check("x", None, 1)
    with pytest.raises(InputError, match=r"x has shape \[1, 3\]"):
        LinearEncoder(2, 4).check("x", torch.zeros(1, 3), 1)
