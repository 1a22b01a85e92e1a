import pytest
import torch

from ckgconv import InputError
from ckgconv.nn.encoders import ConstantEncoder, LinearEncoder, TypeEncoder, attribute_encoder
from ckgconv.recipe import AttributeRecipe


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


def test_rows_are_divided_by_their_absolute_sum_and_zeros_stay():
    encoder = LinearEncoder(3, 4, normalise="rows")
    attributes = torch.tensor([[1.0, -2.0, 1.0], [0.0, 0.0, 0.0]])
    expected = encoder.linear(torch.tensor([[0.25, -0.5, 0.25], [0.0, 0.0, 0.0]]))
    torch.testing.assert_close(encoder(attributes, 2), expected)


def test_attributes_are_dropped_in_training_only():
    encoder = LinearEncoder(1000, 4, dropout=0.8)
    dropped = encoder.inputs(torch.ones(3, 1000))
    assert dropped.unique().tolist() == pytest.approx([0.0, 5.0], rel=1e-2)
    assert 0.1 < (dropped > 0).float().mean() < 0.3
    assert torch.equal(encoder.eval().inputs(torch.ones(3, 1000)), torch.ones(3, 1000))


@pytest.mark.parametrize("sizes", [(), (3, 4)])
def test_numbers_have_one_size(sizes):
    with pytest.raises(InputError, match=r"set sizes to \[channels\]"):
        attribute_encoder(AttributeRecipe("linear", sizes), 4)


def test_only_numbers_are_normalised_and_dropped():
    for recipe in (AttributeRecipe("types", (3,), dropout=0.1), AttributeRecipe("constant", normalise="rows")):
        with pytest.raises(InputError, match=f"Attributes of kind '{recipe.kind}' are not numbers"):
            attribute_encoder(recipe, 4)
