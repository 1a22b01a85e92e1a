"""Trained networks by name: their files, what they predict, how they are found and refused."""

from pathlib import Path

import pytest
import torch

from ckgconv import InputError, open_run, predict_smiles
from ckgconv.engine.ensemble import open_networks
from ckgconv.engine.opened import open_network
from ckgconv.engine.trained import FOLDER, TRAINED, run_folder

RESULTS = Path(__file__).parents[2] / "results"
LARGEST = 2 * 2**20  # bytes of the weights


def test_every_folder_has_a_name_and_is_small():
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in TRAINED.values()}
    for folder in TRAINED.values():
        assert sorted(path.name for path in folder.iterdir()) == ["best.json", "best.safetensors", "recipe.json"]
        assert (folder / "best.safetensors").stat().st_size < LARGEST


@pytest.mark.parametrize("name", ["recipe.json", "best.json", "best.safetensors"])
def test_zinc_is_the_run_in_results(name):
    assert (TRAINED["zinc"] / name).read_bytes() == (RESULTS / "zinc" / name).read_bytes()


def test_a_folder_of_the_same_name_is_meant_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_folder("zinc") == run_folder(Path("zinc")) == TRAINED["zinc"]
    assert run_folder("runs/zinc") == Path("runs/zinc")
    Path("zinc").mkdir()
    assert run_folder("zinc") == Path("zinc")
    with pytest.raises(InputError, match=r"zinc has no recipe\.json"):
        open_network("zinc")


def test_an_unknown_name_lists_the_known_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for opened in (open_run, open_network, lambda name: open_networks([name, "zinc"])):
        with pytest.raises(InputError, match=r"zink is not a folder: .* a trained network by name \(.*zinc.*\)"):
            opened("zink")


def test_molecules_are_predicted_as_the_graphs_of_the_data_set():
    """SMILES of ZINC-250k whose graphs are these molecules of the test split."""
    run = open_run("zinc", device="cpu")
    assert run.record.best.val < 0.07
    found = predict_smiles(run, list(MOLECULES.values()))
    assert not any(found.reasons)
    graphs = torch.tensor(list(MOLECULES))
    from ckgconv.engine.epoch import predict_batch
    from ckgconv.engine.prepared import prepare

    wanted = predict_batch(run.learner, prepare(run.learner, graphs).batch)
    torch.testing.assert_close(torch.tensor(found.values), wanted, rtol=1e-4, atol=1e-4)
    error = (wanted.squeeze(-1) - run.learner.data.y[graphs]).abs().mean()
    assert float(error) < 0.2
