"""Explanations: of one run or of the mean of several, of values or logits; wrong input is refused in a sentence."""

import math
from dataclasses import replace

import pytest
from known_runs import run_of, small_recipe

from ckgconv import InputError, explain, predict_smiles
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.explanation import METHODS, Explainer, explainer, methods
from ckgconv.explanation.explainer import kind_of_output, output_names
from ckgconv.recipe import HeadRecipe


def test_several_runs_are_explained_by_their_mean(run):
    other = run_of(small_recipe(("y", "z"), width=16))
    both, one, two = (explain(each, "CCO", "z") for each in ([run, other], run, other))
    assert both.members == 2
    assert both.atoms == pytest.approx([(a + b) / 2 for a, b in zip(one.atoms, two.atoms, strict=True)])
    assert both.prediction == pytest.approx((one.prediction + two.prediction) / 2)
    assert both.total + both.baseline + both.residual == pytest.approx(both.prediction)


def test_labels_are_explained_as_log_odds():
    run = run_of(small_recipe(classification=True))
    found = explain(run, "CCO")
    assert found.unit == "log-odds of y"
    probability = predict_smiles(run, ["CCO"]).values[0][0]
    assert 1 / (1 + 2.718281828459045**-found.prediction) == pytest.approx(probability, abs=1e-5)


def test_bonds_are_shared_by_their_atoms(run):
    found = explain(run, "CC=O")
    assert sum(found.per_atom) == pytest.approx(found.total)
    assert found.per_atom[0] == pytest.approx(found.atoms[0] + found.bonds[0] / 2)
    assert found.ends == ((0, 1), (1, 2))


@pytest.mark.parametrize(
    ("smiles", "target", "says"),
    [
        ("nonsense", 0, "not a valid SMILES"),
        ("", 0, "empty"),
        ("CC", 2, "from 0 to 1"),
        ("CC", "w", "no target 'w'"),
        ("CC", -1, "from 0 to 1"),
    ],
)
def test_wrong_input_is_refused(run, smiles, target, says):
    with pytest.raises(InputError, match=says):
        explain(run, smiles, target)


def test_runs_without_molecules_or_of_other_targets_are_refused(run):
    with pytest.raises(InputError, match="No run"):
        Explainer([])
    with pytest.raises(InputError, match="other targets"):
        Explainer([run, run_of(small_recipe(("w", "v")))])
    with pytest.raises(InputError, match="not a folder"):
        Explainer("missing")
    from ckgconv.recipes import recipe, with_value

    nodes = with_value(with_value(recipe("pattern"), "model.width=8"), "model.blocks=1")
    with pytest.raises(InputError, match="predicts each node"):
        Explainer(run_of(nodes))


@pytest.mark.parametrize("method", METHODS)
def test_descriptors_are_a_term_of_their_own(method):
    recipe = small_recipe(graph_features=len(DESCRIPTORS))
    recipe = replace(recipe, data=replace(recipe.data, descriptors="rdkit"))
    run = run_of(recipe)
    run.model.graph_join.spread.fill_(100.0)
    found = explain(run, "CC(=O)O", method=method)
    assert (len(found.atoms), len(found.bonds)) == (4, 3)
    assert found.descriptors != 0
    assert found.total == pytest.approx(sum(found.atoms) + sum(found.bonds) + found.descriptors)
    assert found.prediction == pytest.approx(predict_smiles(run, ["CC(=O)O"]).values[0][0], abs=1e-5)
    assert found.total + found.baseline + found.residual == pytest.approx(found.prediction, abs=1e-5)
    assert found.adds_up == (method in ("integrated_gradients", "shapley"))


def with_columns(descriptors="none", columns=("ph", "dose")):
    """A run that reads own columns, of which the first has the weight that all features have."""
    read = len(columns) + (len(DESCRIPTORS) if descriptors == "rdkit" else 0)
    recipe = small_recipe(graph_features=read)
    run = run_of(replace(recipe, data=replace(recipe.data, descriptors=descriptors, features=columns)))
    run.model.graph_join.mean[-len(columns) :] = 5.0
    run.model.graph_join.spread.fill_(100.0)
    return run


@pytest.mark.parametrize("descriptors", ["none", "rdkit"])
@pytest.mark.parametrize("method", METHODS)
def test_own_columns_are_terms_of_their_own(method, descriptors):
    run = with_columns(descriptors)
    found = explain(run, "CC(=O)O", method=method, features=[7.0, math.nan])
    assert set(found.features) == {"ph", "dose"}
    assert found.features["ph"] != 0
    assert found.features["dose"] == pytest.approx(0, abs=1e-6)  # unknown, and so its mean
    assert (found.descriptors != 0) == (descriptors == "rdkit")
    expected = predict_smiles(run, ["CC(=O)O"], features=[[7.0, math.nan]]).values[0][0]
    assert found.prediction == pytest.approx(expected, abs=1e-5)
    assert found.total + found.baseline + found.residual == pytest.approx(found.prediction, abs=1e-5)
    assert found.adds_up == (method in ("integrated_gradients", "shapley"))
    both = Explainer([run, run], method=method)("CC(=O)O", [7.0, math.nan])
    assert both.features == pytest.approx(found.features)


def test_a_column_beyond_its_limit_is_explained_as_the_limit(monkeypatch):
    legendre, run = methods._legendre, with_columns()
    run.model.graph_join.spread.fill_(0.5)  # 5 ± 5 · 0.5 is all that the head reads
    numbers = []
    monkeypatch.setattr(methods, "_legendre", lambda points: numbers.append(points) or legendre(points))
    beyond, at = (explain(run, "CC(=O)O", features=[value, 5.0]) for value in (700.0, 7.5))
    assert replace(beyond, residual=0.0) == replace(at, residual=0.0)
    assert abs(beyond.residual) < methods.TOLERANCE * sum(map(abs, (*beyond.atoms, *beyond.bonds)))
    assert numbers == [methods.POINTS] * 2  # no kink on the way


def test_members_read_a_molecule_once(monkeypatch):
    run, read = with_columns("rdkit"), []
    pack = explainer.pack_molecules
    monkeypatch.setattr(explainer, "pack_molecules", lambda *given, **named: read.append(1) or pack(*given, **named))
    both = Explainer([run, run])
    first = both("CCC=O", [7.0, 1.0])
    assert len(read) == 1
    assert both("CCC=O", [2.0, 1.0]).features != first.features
    assert both("CCC=O", [7.0, 1.0]).atoms == first.atoms


def test_recipes_with_lists_and_what_is_no_text():
    recipe = small_recipe(("y", "z"))
    run = run_of(replace(recipe, data=replace(recipe.data, targets=["y", "z"])))
    assert explain(run, "CCO") == explain(run_of(recipe), "CCO")
    with pytest.raises(InputError, match=r"The SMILES is \['CCO'\]: give a text"):
        explain(run, ["CCO"])


def test_own_columns_have_to_be_given_and_the_same():
    run = with_columns()
    for features in (None, [7.0], [7.0, 1.0, 2.0]):
        with pytest.raises(InputError, match="reads ph, dose beside each molecule"):
            explain(run, "CC", features=features)
    with pytest.raises(InputError, match="reads other columns than"):
        Explainer([run, with_columns(columns=("ph", "age"))])


def test_classes_have_names_and_logits():
    recipe = small_recipe(head=HeadRecipe("pyramid", "mean", layers=2, outputs=3))
    training = replace(recipe.training, loss="cross_entropy", metric="accuracy", scale_targets=False)
    run = run_of(replace(recipe, training=training))
    found = explain(run, "CC", "2")
    assert (found.target, found.unit) == ("output 2", "logit of output 2")
    assert output_names(run) == ["output 0", "output 1", "output 2"]
    assert kind_of_output(run, 1) == "classes"


def test_of_classes_the_most_probable_one_is_explained():
    recipe = small_recipe(head=HeadRecipe("pyramid", "mean", layers=2, outputs=3))
    training = replace(recipe.training, loss="cross_entropy", metric="accuracy", scale_targets=False)
    named = replace(recipe.data, targets=("c",), classes=(("high", "low", "mid"),))
    for data, target in ((recipe.data, None), (named, None), (named, "c")):
        run = run_of(replace(recipe, data=data, training=training))
        probable = predict_smiles(run, ["CC"]).values[0]
        best = probable.index(max(probable))
        assert explain(run, "CC", target).target == output_names(run)[best]
        assert explain([run, run], "CC", target).target == output_names(run)[best]
    assert explain(run, "CC", "c = mid").target == "c = mid"
    with pytest.raises(InputError):
        explain(run, "no molecule")
