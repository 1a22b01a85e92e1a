"""ψ around an atom is that of the network's own kernel."""

from xml.etree import ElementTree

import pytest
import torch
from known_runs import run_of, small_recipe, sum_of_parts

from ckgconv import InputError
from ckgconv.explanation import Explainer
from ckgconv.explanation.kernels import draw_kernel, kernel_around


def test_values_are_those_of_the_layer(run):
    explainer = Explainer(run)
    found = kernel_around(explainer, "CC=O", 1, 2)
    inputs = explainer.inputs("CC=O")
    psi = list(inputs.network.kernel(inputs.parts[1].rows, inputs.batch(1).pairs))[1].stored.view(3, 3, -1)
    assert torch.allclose(found.values, psi[1], atol=1e-6)
    svg = draw_kernel(found, [0, 5])
    ElementTree.fromstring(svg)
    assert "layer 2, channel 5, around atom 1" in svg
    assert len(found.strongest()) == 3


def test_atoms_outside_the_support_have_no_coefficient():
    found = kernel_around(Explainer(run_of(small_recipe(support=1))), "CCCO", 0, 1)
    assert found.values.isnan().all(1).tolist() == [False, False, True, True]
    ElementTree.fromstring(draw_kernel(found))
    background = kernel_around(Explainer(run_of(small_recipe(support="sparse_global"))), "CCCCCCCC", 0, 1)
    assert not background.values.isnan().any()


def test_wrong_numbers_are_refused(run):
    explainer = Explainer(run)
    for atom, layer, says in ((3, 1, "atoms 0 to 2"), (0, 3, "layers 1 to 2"), (0, 0, "layers 1 to 2")):
        with pytest.raises(InputError, match=says):
            kernel_around(explainer, "CC=O", atom, layer)
    with pytest.raises(InputError, match="from 0 to 7"):
        draw_kernel(kernel_around(explainer, "CC=O", 0, 1), [8])
    with pytest.raises(InputError, match="no kernels"):
        kernel_around(Explainer(sum_of_parts()), "CC", 0, 1)
