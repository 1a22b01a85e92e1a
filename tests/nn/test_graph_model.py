"""A model of one's own from `GraphModel`: trained, padded, embedded, exported without a line about engines."""

from dataclasses import dataclass, replace

import pytest
import torch
from small_data import small_dataset
from torch import nn

from ckgconv import InputError, recipe
from ckgconv.engine.epoch import eager_step, evaluate
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import source_of
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.step import evaluation_step, training_step
from ckgconv.nn import CKGCN, GraphModel, make_head
from ckgconv.nn.export import export_model
from ckgconv.recipe import ModelRecipe


@dataclass(frozen=True, kw_only=True)
class SumRecipe(ModelRecipe):
    kind: str = "sum"
    layers: int = 2


class SumNetwork(GraphModel):
    """h ← h + W (h + Σ over incoming edges of h): a message-passing network in a few lines."""

    Recipe = SumRecipe

    def __init__(self, recipe):
        super().__init__(recipe)
        self.layers = nn.ModuleList(nn.Linear(recipe.width, recipe.width) for _ in range(recipe.layers))
        self.head = make_head(recipe.head, recipe.width)

    def node_states(self, batch):
        h = self.node_encoder(batch.node_features, batch.node_features.shape[0])
        sender, receiver = batch.edge_index
        for layer in self.layers:
            h = h + torch.tanh(layer(h + torch.zeros_like(h).index_add(0, receiver, h[sender])))
        return h


def own_recipe(pooling="sum"):
    chosen = recipe("zinc")
    model = SumRecipe(
        width=8,
        node=chosen.model.node,
        edge=chosen.model.edge,
        head=replace(chosen.model.head, pooling=pooling),
        support=1,
        steps=2,
    )
    return replace(chosen, name="sum", model=model, training=replace(chosen.training, batch_size=3))


@pytest.fixture
def learner():
    chosen = own_recipe()
    torch.manual_seed(0)
    return make_learner(make_fabric("cpu", "64"), SumNetwork(chosen.model).double(), small_dataset(chosen), chosen)


def test_it_learns(learner):
    graphs = learner.data.train
    losses = [eager_step(learner, graphs) for _ in range(30)]
    assert losses[-1] < losses[0]
    assert evaluate(learner, "val") > 0


def test_padding_changes_nothing(learner):
    source, numbers = source_of(learner), torch.tensor([2, -1, 0])
    before = {name: value.clone() for name, value in learner.model.state_dict().items()}
    sample = source.sample(learner.data, numbers, source.sizes.needed(torch.tensor([[1, 2, 3]])), "train")
    learner.model.eval()
    found = []
    evaluation_step(learner, sample, found.append)
    expected = learner.predicted(learner.batch(numbers[numbers >= 0]))
    torch.testing.assert_close(found[0][numbers >= 0], expected)
    learner.model.train()
    training_step(learner, sample, found.append)
    again = make_learner(learner.fabric, SumNetwork(learner.model.recipe).double(), learner.data, own_recipe())
    again.model.load_state_dict(before)
    again.model.train()
    assert float(found[1]) == pytest.approx(eager_step(again, numbers[numbers >= 0]))


def test_what_every_model_can_do(learner):
    model = learner.model.eval()
    batch = model.prepare(learner.batch(torch.tensor([0, 1])))
    assert model.embed(batch).shape == (2, 8)
    assert model(batch).shape == (2, 1)
    assert model.outputs == 1
    assert not model.predicts_nodes
    assert model.dtype == torch.float64
    assert model.pair_traffic == 0
    assert sum(model.parameters_by_component().values()) == sum(p.numel() for p in model.parameters())
    exported = export_model(model, learner.batch(torch.tensor([0])))
    torch.testing.assert_close(exported.module()(batch), model(batch))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    torch.manual_seed(1)
    model.reset_parameters()
    assert all(not torch.equal(value, before[name]) for name, value in model.named_parameters())


def test_predictions_per_node():
    model = SumNetwork(own_recipe("none").model)
    assert model.predicts_nodes


def test_refusals():
    with pytest.raises(InputError, match="of kind 'sum', not of CKGCN"):
        CKGCN.from_recipe(own_recipe())
    model = own_recipe().model
    blind = replace(model, node=replace(model.node, kind="none", sizes=()))
    with pytest.raises(InputError, match=r"node\.kind is 'none'"):
        SumNetwork(blind)

    class Unfinished(GraphModel):
        Recipe = SumRecipe

    with pytest.raises(TypeError, match="Unfinished has no node_states"):
        Unfinished(own_recipe().model).node_states(None)
    with pytest.raises(TypeError, match="Unfinished has no input_states"):
        Unfinished(own_recipe().model).input_states(None)
    with pytest.raises(TypeError, match="Unfinished has no layer_states"):
        Unfinished(own_recipe().model).layer_states(0, None, None)
    assert Unfinished(own_recipe().model).depth == 0
