"""Trained networks by name: their files, what they predict, how they are found and refused."""

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from ckgconv import InputError, open_run, predict_smiles
from ckgconv.cli import app
from ckgconv.data import zinc
from ckgconv.data.molecules import read_smiles
from ckgconv.engine.ensemble import open_networks
from ckgconv.engine.epoch import predict_batch
from ckgconv.engine.opened import open_network
from ckgconv.engine.prepared import prepare
from ckgconv.engine.trained import FOLDER, TRAINED, run_folder

RESULTS = Path(__file__).parents[2] / "results"
LARGEST = 2 * 2**20  # bytes of the weights
# Graphs of the test split and their SMILES in ZINC-250k; all but the last have the alternation that RDKit chooses.
MOLECULES = {
    11_001: "O=C(NCCNS(=O)(=O)c1cccc(Cl)c1F)c1cccnc1",
    11_002: "Cc1[nH]c2ccccc2c1CC(=O)N[C@H](C(N)=O)c1ccccc1",
    11_005: "CCc1nc2n(n1)[C@@H](CC(=O)Nc1ccccc1OC)C(=O)N2",
    11_006: "IC[C@@H]1Cn2c(nnc2-c2ccncc2)S1",
    11_007: "COC(=O)[C@H]1C[C@H]2CCCC[C@@H]2N1S(=O)(=O)N1CCOCC1",
    11_004: "CC[NH2+][C@@H](Cc1ccc2c(c1)CCC2)[C@H]1CSCCS1",
}


def test_every_folder_has_a_name_and_is_small():
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in TRAINED.values()}
    for folder in TRAINED.values():
        assert sorted(path.name for path in folder.iterdir()) == ["best.json", "best.safetensors", "recipe.json"]
        assert (folder / "best.safetensors").stat().st_size < LARGEST


@pytest.mark.parametrize("file", ["recipe.json", "best.json", "best.safetensors"])
@pytest.mark.parametrize(("name", "folder"), [("zinc", "zinc"), ("zinc-grit", "models-zinc/runs/zinc-grit-bf16-seed0")])
def test_each_is_a_run_in_results(name, folder, file):
    assert (TRAINED[name] / file).read_bytes() == (RESULTS / folder / file).read_bytes()


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


@pytest.mark.parametrize("name", ["zinc", "zinc-grit"])
def test_molecules_are_predicted_as_the_graphs_of_the_data_set(name):
    run = open_run(name, device="cpu")
    assert run.record.best.val < 0.07
    graphs = torch.tensor(list(MOLECULES))
    found = predict_smiles(run, list(MOLECULES.values()))
    assert not any(found.reasons)
    wanted = predict_batch(run.learner, prepare(run.learner, graphs).batch)
    from_smiles = torch.tensor(found.values)
    torch.testing.assert_close(from_smiles[:-1], wanted[:-1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(from_smiles[-1], wanted[-1], rtol=0, atol=0.1)
    assert float((from_smiles.squeeze(-1) - run.learner.data.y[graphs]).abs().mean()) < 0.2


def test_charges_and_hydrogens_are_read_as_in_the_data_set():
    """Atom types and bonds of one molecule, as sets: the order of atoms is that of the SMILES."""
    data, graph = zinc(), 11_007
    nodes, edges = (slice(*pointer[graph : graph + 2].tolist()) for pointer in (data.node_ptr, data.edge_ptr))
    found = read_smiles(MOLECULES[graph], "zinc")
    assert sorted(found.x[:, 0]) == sorted(data.x[nodes, 0].tolist())
    assert sorted(found.edge_attr[:, 0]) == sorted(data.edge_attr[edges, 0].tolist())


def test_the_command_line_predicts_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text("smiles\nCCO\nC[Si](C)(C)C\n")
    found = CliRunner().invoke(app, ["predict", "zinc", "m.csv", "-o", "out.csv", "--device", "cpu", "--json"])
    assert found.exit_code == 0, found.output
    header, first, second = Path("out.csv").read_text().splitlines()
    assert header == "smiles,prediction,reason"
    assert first.startswith("CCO,")
    assert second.endswith(",,Atom 'Si' is not among the types of ZINC-12k.")
