import pytest
import torch
from torch.nn import functional as F

from ckgconv import InputError
from ckgconv.nn.head import MLPHead, NormalisedHead, Pool, PyramidHead, make_head, make_relu_head
from ckgconv.recipe import HeadRecipe

pytestmark = pytest.mark.usefixtures("double")


def test_pooling_by_graph():
    x, graph, pointer = torch.randn(5, 3), torch.tensor([0, 0, 1, 1, 1]), torch.tensor([0, 2, 5])
    torch.testing.assert_close(Pool("sum")(x, graph, pointer), torch.stack([x[:2].sum(0), x[2:].sum(0)]))
    torch.testing.assert_close(Pool("mean")(x, graph, pointer), torch.stack([x[:2].mean(0), x[2:].mean(0)]))
    assert Pool("none")(x, graph, pointer) is x
    with pytest.raises(InputError, match="pooling is 'max'"):
        Pool("max")
    assert repr(Pool("sum")) == "Pool(sum)"


def test_pyramid_halves_its_width():
    head = PyramidHead(16, 2, layers=3)
    assert [tuple(linear.weight.shape) for linear in head.linears] == [(8, 16), (4, 8), (2, 4)]
    x = torch.randn(5, 16)
    first, second, third = head.linears
    torch.testing.assert_close(head(x), third(F.gelu(second(F.gelu(first(x))))))


def test_a_pyramid_has_no_layer_without_channels():
    head = HeadRecipe("pyramid", "sum", layers=5, outputs=2)
    assert make_head(head, 16).linears[-1].weight.shape == (2, 1)
    with pytest.raises(InputError, match="set it to at most 4"):
        make_relu_head(head, 15)


def test_normalised_head_puts_hidden_features_on_the_sphere():
    head = NormalisedHead(6, 3, layers=3)
    x = torch.randn(5, 6)
    hidden = x
    for linear in list(head.linears)[:-1]:
        hidden = torch.relu(linear(hidden))
        hidden = hidden / hidden.norm(dim=-1, keepdim=True).clamp(min=1e-12)
    torch.testing.assert_close(head(x), head.linears[-1](hidden))
    with torch.no_grad():
        head.linears[0].weight.zero_()
        head.linears[0].bias.fill_(-1)
    assert torch.isfinite(head(x)).all()  # a dead layer is zero, not 0/0


def test_mlp_head_keeps_its_width():
    recipe, x = HeadRecipe("mlp", "mean", layers=3, outputs=2, dropout=0.5), torch.randn(5, 6)
    for make, activation in ((make_head, F.gelu), (make_relu_head, torch.relu)):
        head = make(recipe, 6)
        assert isinstance(head, MLPHead)
        assert not torch.equal(head(x), head(x))
        first, second, third = head.eval().linears
        torch.testing.assert_close(head(x), third(activation(second(activation(first(x))))))
    for kind in ("pyramid", "normalised"):
        with pytest.raises(InputError, match=f"head.dropout is 0.5, but a head of kind '{kind}' has none"):
            make_head(HeadRecipe(kind, "mean", layers=2, outputs=1, dropout=0.5), 6)


@pytest.mark.parametrize("kind", ["mlp", "pyramid"])
def test_the_recipe_may_choose_the_activation(kind):
    x = torch.randn(5, 8)
    for activation, function in (("gelu", F.gelu), ("relu", torch.relu)):
        for make in (make_head, make_relu_head):
            head = make(HeadRecipe(kind, "mean", layers=2, outputs=3, activation=activation), 8)
            first, second = head.linears
            torch.testing.assert_close(head(x), second(function(first(x))))


def test_a_normalised_head_has_relu():
    with pytest.raises(InputError, match="normalised head has ReLU: set it to 'model', or choose kind 'mlp'"):
        make_head(HeadRecipe("normalised", "mean", layers=2, outputs=3, activation="gelu"), 8)
    assert isinstance(
        make_head(HeadRecipe("normalised", "mean", layers=2, outputs=3, activation="relu"), 8), NormalisedHead
    )
