import numpy as np
import pytest
import torch
from molecules_for_tests import ENDS, LENGTHS, SMILES, TINY

from ckgconv import CKGCNClassifier, CKGCNRegressor, InputError
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.estimators.fitting import InvalidMoleculeWarning, Targets, seed_of, validation_split


def test_parameters_reach_the_recipe():
    chosen = {**TINY, "learning_rate": np.float64(0.01), "support": 2, "loss": "huber", "metric": "rmse", "epochs": 1}
    recipe = CKGCNRegressor(**chosen).fit(SMILES, LENGTHS).run_.recipe
    assert recipe.training.learning_rate == 0.01
    assert (recipe.model.support, recipe.training.loss, recipe.training.metric) == (2, "huber", "rmse")
    assert (recipe.training.epochs, recipe.training.warmup_epochs, recipe.model.steps) == (1, 0, 2)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"width": 0}, "model.width"),
        ({"width": "wide"}, "model.width"),
        ({"settings": {"model.widht": 3}}, "model.width"),
        ({"settings": [("model.width", 3)]}, "settings is a list"),
        ({"settings": {"model.width": object()}}, "model.width is a object"),
        ({"validation_fraction": 1.0}, "validation_fraction is 1.0"),
        ({"validation_fraction": "much"}, "validation_fraction is 'much'"),
        ({"random_state": -1}, "random_state is -1"),
        ({"device": "gpu"}, "gpu"),
        ({"loss": "binary"}, "training.metric"),
    ],
)
def test_wrong_parameters_are_refused_by_fit(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGCNRegressor(**{**TINY, **changes}).fit(SMILES, LENGTHS)


def test_invalid_molecules_are_left_out_and_named():
    smiles = [*SMILES[:6], "C1CC", None]
    with pytest.warns(InvalidMoleculeWarning, match="2 of 8 rows of X are left out of training. Row 6: 'C1CC' is not"):
        fitted = CKGCNRegressor(**TINY).fit(smiles, np.arange(8.0))
    assert fitted.run_.learner.data.num_graphs == 6


def test_too_few_molecules_are_refused():
    with pytest.warns(InvalidMoleculeWarning), pytest.raises(InputError, match="X has 1 sample with a valid SMILES"):
        CKGCNRegressor(**TINY).fit(["C", "C("], [1.0, 2.0])


def test_the_generator_of_the_caller_is_left_alone():
    torch.manual_seed(5)
    expected = torch.rand(1)
    torch.manual_seed(5)
    CKGCNRegressor(**TINY).fit(SMILES[:6], LENGTHS[:6])
    assert torch.equal(torch.rand(1), expected)


def test_seeds():
    assert seed_of(7) == seed_of(np.int64(7)) == 7
    assert seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))


def test_every_class_validates_where_it_has_enough_rows():
    y = torch.tensor([0] * 20 + [1] * 2 + [2] * 2)
    split = validation_split(Targets(y, ("y",), "classes"), 0.1, seed=0)
    assert y[split["val"]].unique().tolist() == y[split["train"]].unique().tolist() == [0, 1, 2]
    lonely = torch.tensor([0] * 20 + [1])
    assert len(validation_split(Targets(lonely, ("y",), "classes"), 0.1, seed=0)["val"]) == 2
    alone = torch.arange(4)
    assert len(validation_split(Targets(alone, ("y",), "classes"), 0.1, seed=0)["val"]) == 1


def test_two_classes_are_one_label_where_an_auroc_is_defined(classifier):
    assert (classifier.run_.recipe.training.loss, classifier.run_.recipe.training.metric) == ("binary", "auroc")
    lonely = np.where(np.arange(len(SMILES)) == 0, "rare", ENDS[1])
    recipe = CKGCNClassifier(**TINY).fit(SMILES, lonely).run_.recipe
    assert (recipe.training.loss, recipe.model.head.outputs) == ("cross_entropy", 2)


def test_descriptors_are_read_unless_told_otherwise():
    read = {**TINY, "descriptors": True}
    fitted = CKGCNRegressor(**read).fit(SMILES, LENGTHS)
    assert fitted.run_.recipe.data.descriptors == "rdkit"
    assert fitted.run_.model.recipe.graph_features == len(DESCRIPTORS)
    assert np.isfinite(fitted.predict(["CCO"])).all()
    assert CKGCNRegressor().descriptors is True
    with pytest.raises(InputError, match="descriptors is 'yes': give True or False"):
        CKGCNRegressor(**{**TINY, "descriptors": "yes"}).fit(SMILES, LENGTHS)
