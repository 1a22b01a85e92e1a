"""Contributions: exact for a network that is a sum, and those that are said to add up do."""

from dataclasses import replace

import pytest
import torch
from known_runs import run_of, small_recipe

from ckgconv import InputError
from ckgconv.explanation import METHODS, Explainer

ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


@pytest.mark.parametrize("method", METHODS)
def test_contributions_of_a_sum_are_its_terms(sum_run, method):
    explainer = Explainer(sum_run, method=method)
    inputs = explainer.inputs("CC=O")
    model = inputs.network
    weight = model.head.weight[0]
    batch = inputs.batch(1)
    atoms = model.node_encoder(batch.node_features, 3) @ weight
    edges = model.edge_encoder(batch.edge_features, 4) @ weight
    found = explainer("CC=O")
    bonds = edges.view(2, 2).sum(1).tolist()
    # An occluded atom takes its bonds with it.
    beside = [bonds[0], sum(bonds), bonds[1]] if method == "occlusion" else [0, 0, 0]
    if method == "shapley":  # a bond is there once both atoms have joined
        assert sum(found.atoms) + sum(found.bonds) == pytest.approx(float(atoms.sum()) + sum(bonds), abs=1e-5)
    else:
        assert found.atoms == pytest.approx([a + b for a, b in zip(atoms.tolist(), beside, strict=True)], abs=1e-5)
        assert found.bonds == pytest.approx(bonds, abs=1e-5)
    assert found.baseline == pytest.approx(float(model.head.bias), abs=1e-6)
    assert abs(found.residual) < 1e-5 or method == "occlusion"


@pytest.mark.parametrize("changes", [{}, {"support": 2}, {"support": "sparse_global"}])
@pytest.mark.parametrize("method", METHODS)
def test_what_is_said_to_add_up_does(method, changes):
    found = Explainer(run_of(small_recipe(**changes)), method=method)(ASPIRIN)
    parts = sum(found.atoms) + sum(found.bonds)
    assert parts + found.baseline + found.residual == pytest.approx(found.prediction, abs=1e-5)
    if found.adds_up:
        assert abs(found.residual) < 2e-3
        assert "add up:" in found.sentence()
    else:
        assert "do not add up" in found.sentence()
        assert abs(found.residual) > 1e-6
    assert (len(found.atoms), len(found.bonds)) == (13, 13)


def test_prediction_is_that_of_the_run(run):
    from ckgconv import predict_smiles

    values = predict_smiles(run, [ASPIRIN]).values[0]
    for place, name in enumerate(("y", "z")):
        found = Explainer(run, name)(ASPIRIN)
        assert found.prediction == pytest.approx(values[place], abs=1e-5)
        assert found.unit == name


@pytest.mark.parametrize("method", ["integrated_gradients", "gradient", "occlusion"])
def test_renumbered_atoms_have_the_same_contributions(run, method):
    from rdkit import Chem

    explainer = Explainer(run, method=method)
    molecule = Chem.MolFromSmiles("CC(=O)NC1CC1F")
    order = torch.randperm(molecule.GetNumAtoms()).tolist()
    other = Chem.MolToSmiles(Chem.RenumberAtoms(molecule, order), canonical=False)
    place = Chem.MolFromSmiles(other).GetSubstructMatch(molecule)  # of each atom in the other numbering
    first, second = explainer("CC(=O)NC1CC1F"), explainer(other)
    assert other != first.smiles
    assert first.atoms == pytest.approx([second.atoms[atom] for atom in place], abs=1e-5)
    by_ends = {frozenset(ends): value for ends, value in zip(second.ends, second.bonds, strict=True)}
    renamed = [by_ends[frozenset((place[i], place[j]))] for i, j in first.ends]
    assert first.bonds == pytest.approx(renamed, abs=1e-5)


def test_other_models_are_cut_at_their_encoders():
    from ckgconv.recipes import recipe, with_value

    chosen = recipe("zinc-grit")
    for setting in ("model.width=8", "model.blocks=1", "model.heads=2", "model.steps=3"):
        chosen = with_value(chosen, setting)
    found = Explainer(run_of(chosen))("CCO")
    assert found.adds_up
    assert abs(found.residual) < 0.01 * sum(map(abs, (*found.atoms, *found.bonds)))
    assert not replace(found, residual=0.5).adds_up
    assert found.target == "output 0"


def test_an_atom_alone_has_no_bonds(run):
    found = Explainer(run)("C")
    assert (len(found.atoms), found.bonds) == (1, ())
    assert abs(found.residual) < 2e-3


def test_an_unknown_method_is_refused(run):
    with pytest.raises(InputError, match="method"):
        Explainer(run, method="guess")("CC")
