"""An exported folder, used as its README says, in processes that cannot import ckgconv."""

import json
import subprocess
import sys

import numpy as np
import pytest
from molecules_for_tests import SMILES

from ckgconv import InputError, predict_smiles
from ckgconv.exporting.comparison import CHILD, MOLECULES, largest_difference
from ckgconv.exporting.folder import export_runs


def test_both_formats_agree_with_the_run(exported):
    assert exported.torch < 1e-4
    assert exported.onnx < 1e-4
    assert exported.molecules == len(MOLECULES) - 1
    names = {each.name for each in exported.folder.iterdir()}
    assert names == {"model.pt2", "model.onnx", "featuriser.json", "predict.py", "README.md"}
    text = (exported.folder / "README.md").read_text()
    assert f"{exported.torch:.2e}" in text
    assert "| y | value |" in text


def test_the_script_predicts_one_molecule_and_many(exported, hops):
    arguments = [sys.executable, "-I", "-c", CHILD, str(exported.folder / "predict.py"), "--onnx"]
    done = subprocess.run([*arguments, "CCO", "C1CC"], capture_output=True, text=True, check=True)
    ethanol, broken = (line.split("\t") for line in done.stdout.splitlines())
    ((expected,),) = predict_smiles(hops, "CCO").values
    assert float(ethanol[1]) == pytest.approx(expected, rel=1e-4)
    assert broken == ["C1CC", "'C1CC' is not a valid SMILES."]
    many = SMILES * 3
    done = subprocess.run([*arguments, "--json"], input="\n".join(many), capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)["values"]
    assert np.allclose(found, predict_smiles(hops, many).values, rtol=1e-4)


def test_a_folder_of_another_network_is_found_out(exported, runs):
    with pytest.raises(InputError, match="differs from what was exported by"):
        largest_difference([runs["labels"]], exported.folder, onnx=True, smiles=("CCO", "c1ccccc1"))


def test_a_damaged_network_is_found_out(exported, hops, tmp_path):
    for name in ("predict.py", "featuriser.json"):
        (tmp_path / name).write_bytes((exported.folder / name).read_bytes())
    (tmp_path / "model.onnx").write_bytes(b"nothing")
    with pytest.raises(InputError, match="does not run"):
        largest_difference([hops], tmp_path, onnx=True, smiles=("CCO",))


def test_wrong_arguments_are_refused(hops, tmp_path):
    (tmp_path / "file").write_text("kept")
    with pytest.raises(InputError, match="is not empty"):
        export_runs([hops], tmp_path)
    with pytest.raises(InputError, match="format is 'tflite'"):
        export_runs([hops], tmp_path / "new", "tflite")
    assert not (tmp_path / "new").exists()


def test_descriptors_are_computed_by_the_script(runs, tmp_path):
    done = export_runs([runs["descriptors"]], tmp_path / "descriptors", "onnx")
    assert done.onnx < 1e-4
    tables = json.loads((done.folder / "featuriser.json").read_text())
    assert tables["inputs"][-1] == "graph_features"
    assert len(tables["descriptors"]["names"]) == runs["descriptors"].recipe.model.graph_features


def test_values_of_own_columns_follow_the_smiles(own_columns, tmp_path):
    done = export_runs([own_columns], tmp_path / "own", "torch")
    assert done.torch < 1e-4
    assert json.loads((done.folder / "featuriser.json").read_text())["features"] == ["ph", "dose"]
    assert 'python predict.py "CCO 1.5 1.5"' in (done.folder / "README.md").read_text()
    arguments = [sys.executable, "-I", "-c", CHILD, str(done.folder / "predict.py")]
    asked = ["CCO 7.5 nan", "CCO 7.5", "C1CC 7 7", "CCO 7.5 acid", "CCO 1e400 1"]
    done = subprocess.run([*arguments, *asked], capture_output=True, text=True, check=True)
    ethanol, short, broken, *wrong = (line.split("\t") for line in done.stdout.splitlines())
    ((expected,),) = predict_smiles(own_columns, "CCO", features=[[7.5, float("nan")]]).values
    assert float(ethanol[1]) == pytest.approx(expected, rel=1e-4)
    assert short[1] == "The network reads ph, dose beside a molecule, but 1 values were given."
    assert broken[1] == "'C1CC' is not a valid SMILES."
    assert [reason for _, reason in wrong] == [
        f"'{text}' for {name} is no number of at most 1e+18; give nan where it is unknown."
        for text, name in (("acid", "dose"), ("1e400", "ph"))
    ]


def test_several_networks_are_exported_as_one(hops, another, tmp_path):
    done = export_runs([hops, another], tmp_path / "two")
    assert max(done.torch, done.onnx) < 1e-4
    arguments = [sys.executable, "-I", "-c", CHILD, str(done.folder / "predict.py"), "CCO", "C1CC"]
    ethanol, broken = subprocess.run(arguments, capture_output=True, text=True, check=True).stdout.splitlines()
    (one,), (two,) = (predict_smiles(run, "CCO").values[0] for run in (hops, another))
    assert [float(cell) for cell in ethanol.split("\t")[1:]] == pytest.approx(
        [(one + two) / 2, abs(one - two) / 2**0.5], rel=1e-4
    )
    assert broken.split("\t")[1] == "'C1CC' is not a valid SMILES."
    tables = json.loads((done.folder / "featuriser.json").read_text())
    assert tables["members"] == 2
    assert len(tables["scales"]) == 2
    text = (done.folder / "README.md").read_text()
    assert "2 networks of molecules in one" in text
    assert "| y_deviation | standard deviation between the networks |" in text


def test_members_that_read_molecules_in_other_ways_are_refused(hops, runs, tmp_path):
    with pytest.raises(InputError, match=r"read molecules in different ways \(coordinates\)"):
        export_runs([hops, runs["global"]], tmp_path / "two")
    with pytest.raises(InputError, match="was not trained on the data"):
        export_runs([hops, runs["labels"]], tmp_path / "two")
    assert not (tmp_path / "two").exists()
