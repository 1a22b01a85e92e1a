"""Networks that do not fit into memory are refused before anything of them is built."""

from dataclasses import replace

import pytest
import torch

from ckgconv import InputError, recipe
from ckgconv.nn import size
from ckgconv.nn.models import MODELS, build_model
from ckgconv.nn.size import check_size, count_parameters


@pytest.mark.parametrize(
    "name", ["zinc", "zinc-grit", "zinc-graphormer", "zinc-san", "zinc-gine-plus", "zinc-hybrid-turns"]
)
def test_parameters_are_counted_without_building(name):
    chosen = replace(recipe(name).model, width=16, blocks=6)
    before = torch.get_rng_state()
    counted = count_parameters(MODELS[chosen.kind], chosen)
    assert torch.equal(before, torch.get_rng_state())
    assert counted == sum(parameter.numel() for parameter in build_model(chosen).parameters())


@pytest.mark.parametrize(
    "changes", [{"width": 65_536}, {"node": replace(recipe("zinc").model.node, sizes=(10**9,))}, {"steps": 10_000}]
)
def test_what_does_not_fit_is_refused_with_the_figure(monkeypatch, changes):
    monkeypatch.setattr(size, "free_bytes", lambda device: 10**6)
    chosen = replace(recipe("zinc").model, **changes)
    if "steps" in changes:
        chosen = replace(chosen, width=4096)
    with pytest.raises(InputError, match=r"has about [\d,]+ parameters, which need [\d,.]+ GB; 0.0 GB are free"):
        build_model(chosen)


def test_nothing_is_counted_of_an_ordinary_network(monkeypatch):
    monkeypatch.setattr(size, "count_parameters", None)
    check_size(MODELS["ckgcn"], recipe("zinc").model)
