from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch

from ckgconv import InputError, open_run, predict_smiles
from ckgconv.exporting.comparison import MOLECULES
from ckgconv.exporting.featuriser import featuriser_tables
from ckgconv.exporting.network import exported_network, input_names
from ckgconv.exporting.standalone import batch_of, descriptors_of, pairs_of, read_smiles

KINDS = ("hops", "global", "sparse", "labels", "classes", "descriptors")


def through_tables(run, smiles):
    """Predictions of the network that is exported, for molecules read as `standalone` reads them."""
    tables = featuriser_tables(run)
    walks = tables["coordinates"]
    molecules = [pairs_of(read_smiles(each, tables), walks["steps"], walks["support"]) for each in smiles]
    if tables["descriptors"] is not None:
        for each, molecule in zip(smiles, molecules, strict=True):
            molecule["graph_features"] = descriptors_of(each, tables["descriptors"])
    batch = batch_of(molecules)
    with torch.no_grad():
        return exported_network(run)(*(torch.from_numpy(batch[name]) for name in input_names(run)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_exported_network_predicts_as_its_run(runs, kind):
    smiles = MOLECULES[:-1]
    expected = torch.tensor(predict_smiles(runs[kind], smiles).values)
    torch.testing.assert_close(through_tables(runs[kind], smiles), expected, rtol=1e-4, atol=1e-5)


def test_so_does_the_network_of_zinc():
    run = open_run("zinc", "cpu")
    smiles = ["CCO", "c1ccc2[nH]ccc2c1", "C[N+](C)(C)C", "C"]
    expected = torch.tensor(predict_smiles(run, smiles).values)
    torch.testing.assert_close(through_tables(run, smiles), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"encoding": "spd"}, "encoding 'spd'"),
        ({"position_channels": 2}, "reads positions"),
        ({"width": 6}, "do not fit a plain model"),
    ],
)
def test_networks_that_need_other_inputs_are_refused(runs, changes, sentence):
    run = runs["global"]
    other = replace(run, recipe=replace(run.recipe, model=replace(run.recipe.model, **changes)))
    with pytest.raises(InputError, match=sentence):
        exported_network(other)


def test_networks_of_nodes_and_given_models_are_refused(runs):
    run = runs["global"]
    head = replace(run.recipe.model.head, pooling="none")
    nodes = replace(run, recipe=replace(run.recipe, model=replace(run.recipe.model, head=head)))
    given = SimpleNamespace(folder="runs/own", recipe=replace(run.recipe, given=("model",)))
    for other, sentence in ((nodes, "predicts nodes"), (given, "model given in Python")):
        with pytest.raises(InputError, match=sentence):
            exported_network(other)
