"""A molecule as a function of its embedded parts: copies, masks and owners of rows."""

import pytest
import torch
from known_runs import run_of, small_recipe

from ckgconv.explanation import Explainer
from ckgconv.explanation.inputs import in_batch


@pytest.mark.parametrize("support", ["global", "sparse_global", 1])
def test_copies_are_computed_as_one_alone(support):
    inputs = Explainer(run_of(small_recipe(support=support))).inputs("CC(=O)NCC")
    masks = (torch.rand(5, inputs.units) > 0.3).float()
    alone = torch.cat([inputs.value_of_units(mask[None]) for mask in masks])
    assert torch.allclose(inputs.value_of_units(masks), alone, atol=1e-5)
    assert len(alone.unique()) == 5


def test_nothing_of_a_masked_atom_remains(run):
    inputs = Explainer(run).inputs("CC=O")
    units = torch.ones(1, inputs.units)
    units[0, 2] = 0
    nodes, pairs = inputs.parts
    assert nodes.presence(units, 3).view(1, 3).tolist() == [[1, 1, 0]]
    assert pairs.presence(units, 3).view(3, 3).tolist() == [[1, 1, 0], [1, 1, 0], [0, 0, 0]]
    units = torch.ones(1, inputs.units)
    units[0, 3] = 0  # the first bond
    assert pairs.presence(units, 3).view(3, 3).tolist() == [[1, 0, 1], [0, 1, 1], [1, 1, 1]]


def test_rows_belong_to_atoms_bonds_or_both_ends(run):
    pairs = Explainer(run).inputs("CC=O").parts[1]
    values = torch.arange(9.0).unsqueeze(-1)  # pair (i, j) has the value 3 i + j
    found = pairs.by_unit(values, 3, 5).tolist()
    assert found == [0 + (2 + 6) / 2, 4, 8 + (2 + 6) / 2, 1 + 3, 5 + 7]


def test_zero_rows_come_after_all_stored_ones():
    rows = torch.arange(6).view(2, 3, 1)
    assert in_batch(rows, 2).flatten().tolist() == [0, 1, 3, 4, 2, 5]
