"""Values of other types than documented, at every function of the package: an InputError, never a traceback."""

from pathlib import Path

import pytest
import torch

from ckgconv import (
    CKGCN,
    CKGCNRegressor,
    CKGConv,
    InputError,
    Predictor,
    explain,
    open_run,
    open_runs,
    predict_packed,
    predict_smiles,
    recipe,
    train,
)
from ckgconv.data import load
from ckgconv.engine.opened import open_network
from ckgconv.recipes import from_json, with_value

ZINC = recipe("zinc-demo")
SMALL = with_value(with_value(with_value(ZINC, "data.limit=4"), "training.epochs=1"), "training.warmup_epochs=0")


@pytest.fixture(scope="module")
def run():
    return open_network("zinc", device="cpu")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda run: recipe(3), "There is no recipe 3: give the name of one"),
        (lambda run: recipe([]), r"There is no recipe \[\]: give the name of one"),
        (lambda run: train(3), "recipe is 3: give a Recipe, or the name of one"),
        (lambda run: train(ZINC, seed="a"), "The seed is 'a': give a number from 0"),
        (lambda run: train(ZINC, seed=1.5), "The seed is 1.5"),
        (lambda run: train(ZINC, seed=True), "The seed is True"),
        (lambda run: train(ZINC, data=3), "data is 3: give a PackedDataset, or the folder"),
        (lambda run: train(ZINC, folder=3), "folder is 3: give a path"),
        (lambda run: train(SMALL, model=3), "model is 3: give a torch module"),
        (lambda run: train(SMALL, optimizer=3), "optimizer is 3: give a function of parameters"),
        (lambda run: train(SMALL, watcher=3), "watcher is 3: give one with the methods of Silence"),
        (lambda run: train(SMALL, loss=lambda p, t: p.sum().detach(), device="cpu"), "without a gradient"),
        (lambda run: open_run(None), "The run is None: give a path"),
        (lambda run: open_runs(3), "The list of runs is 3: give a list of folders"),
        (lambda run: open_runs([3]), "The run is 3: give a path"),
        (lambda run: Predictor.open(3), "The run is 3: give a path"),
        (lambda run: predict_smiles("zinc", ["C"]), "The run is 'zinc': give what open_run or train returned"),
        (lambda run: predict_smiles(run, None), "The list of SMILES is None: give a list of texts"),
        (lambda run: predict_packed(3, 3), "The run is 3"),
        (lambda run: predict_packed(run, 3), "data is 3: give a PackedDataset"),
        (lambda run: explain(run, 3), "The SMILES is 3: give a text"),
        (lambda run: explain(3, "C"), "The run is 3: give a path"),
        (lambda run: CKGConv(3, 4, pe=3), "There is no pseudo-coordinate 3"),
        (lambda run: CKGCN(3), "is 3: give a recipe"),
        (lambda run: CKGCN.from_recipe(3), "recipe is 3: give a recipe, or the name of one"),
        (lambda run: CKGCN.from_recipe("zinc")(3), "data is 3: give a graph or a batch of PyG"),
        (lambda run: CKGCNRegressor.load(3), "folder is 3: give a path"),
        (lambda run: with_value(ZINC, 3), "The assignment is 3: give a text"),
        (lambda run: with_value(3, "a=3"), "recipe is 3: give a Recipe"),
        (lambda run: from_json(3, "x"), "x is no recipe"),
        (lambda run: load("zinc"), "recipe is 'zinc': give a DataRecipe"),
    ],
    ids=range(31),
)
def test_other_types_are_refused(run, call, sentence, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=sentence) as caught:
        call(run)
    assert "\n" not in str(caught.value)
    assert list(Path().iterdir()) == []


def test_rows_that_are_no_text_have_a_reason(run):
    sound = ["CC", " CC ethane", "CC Äthan", "CC\u200b", "\ufeffCC"]
    found = predict_smiles(run, [*sound, None, 3.5, b"C", "\ud800", "Cé", "éC", "C\0C", "\u00a0", "\u200b"])
    assert found.reasons[: len(sound)] == [""] * len(sound)
    assert all(value == found.values[0] for value in found.values[: len(sound)])
    assert all(found.reasons[len(sound) :])
    assert all(value is None for value in found.values[len(sound) :])


def test_more_hops_than_nodes_are_the_whole_graph():
    x, edge_index = torch.randn(3, 4), torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    torch.manual_seed(0)
    far = CKGConv(4, 4, support=10**29).eval()
    torch.manual_seed(0)
    near = CKGConv(4, 4, support=3).eval()
    assert torch.equal(far(x, edge_index), near(x, edge_index))
