"""Runs that begin with the weights of another one, and parts that are not trained."""

from dataclasses import replace

import pytest
import torch

from ckgconv.checks import InputError
from ckgconv.engine.initial_weights import freeze, take_weights
from ckgconv.engine.run import train
from ckgconv.nn.models import build_model
from ckgconv.recipes import recipe


def small(**training):
    base = recipe("zinc-demo")
    model = replace(base.model, width=8, blocks=2, steps=3)
    chosen = replace(base.training, epochs=2, batch_size=4, **training)
    return replace(base, model=model, training=chosen, data=replace(base.data, limit=8))


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    folder = tmp_path_factory.mktemp("source") / "run"
    return folder, train(small(), folder=folder, device="cpu")


def test_all_weights_but_those_of_the_head_are_taken(source):
    folder, run = source
    torch.manual_seed(1)
    model = build_model(small().model)
    head = {name: value.clone() for name, value in model.head.state_dict().items()}
    take_weights(model, str(folder))
    for name, value in model.state_dict().items():
        expected = head[name.removeprefix("head.")] if name.startswith("head.") else run.best_weights[name]
        assert torch.equal(value, expected), name


def test_what_does_not_fit_is_refused(source, tmp_path):
    folder, _ = source
    wide = build_model(replace(small().model, width=16))
    with pytest.raises(InputError, match=r"has shape .* that of this model"):
        take_weights(wide, str(folder))
    deep = build_model(replace(small().model, kernel=replace(small().model.kernel, blocks=3)))
    with pytest.raises(InputError, match="has no weights"):
        take_weights(deep, str(folder))
    with pytest.raises(InputError, match="trained network by name"):
        take_weights(wide, "nothing")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="Give a run that has ended"):
        take_weights(wide, str(tmp_path / "empty"))


def test_a_frozen_part_stays_and_the_run_is_resumed_bit_for_bit(source, tmp_path):
    folder, run = source
    chosen = small(init=str(folder), freeze=1)
    whole = train(chosen, folder=tmp_path / "whole", device="cpu")
    frozen = [name for name in run.best_weights if name.startswith(("blocks.0.ffn_in", "kernel.linear", "pair_stem.f"))]
    assert frozen
    for name in frozen:
        assert torch.equal(whole.model.state_dict()[name], run.best_weights[name]), name
    trained = "blocks.1.ffn_in.weight"
    assert not torch.equal(whole.model.state_dict()[trained], run.best_weights[trained])
    assert whole.record.recipe["training"]["init"] == str(folder)
    again = train(chosen, folder=tmp_path / "whole", resume=True, device="cpu")
    assert all(torch.equal(again.best_weights[name], value) for name, value in whole.best_weights.items())


def test_more_blocks_than_there_are_cannot_be_frozen():
    with pytest.raises(InputError, match="has 2 blocks"):
        freeze(build_model(small().model), 3)
    with pytest.raises(InputError, match="has no blocks"):
        freeze(torch.nn.Linear(1, 1), 1)
