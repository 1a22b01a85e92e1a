"""`ckgconv data describe` and `ckgconv pretrain`: the two halves give what the whole gives."""

from pathlib import Path

import torch
from safetensors.torch import load_file


def test_a_described_file_trains_the_same_network(ckgconv):
    Path("all.smi").write_text("CCO\nc1ccccc1\nCC(=O)O\nCCN\nCCCl\n")
    code, out, err = ckgconv("data", "describe", "all.smi", "all.npz", "--molecules", "4")
    assert code == 0, err
    assert "4 molecules of 4 drawn" in out
    settings = ["--epochs", "1", "--device", "cpu", "--out"]
    assert ckgconv("pretrain", "all.npz", *settings, "halves")[0] == 0
    assert ckgconv("pretrain", "all.smi", "--molecules", "4", *settings, "whole")[0] == 0
    halves, whole = (load_file(f"{folder}/best.safetensors") for folder in ("halves", "whole"))
    assert halves.keys() == whole.keys()
    assert all(torch.equal(halves[name], whole[name]) for name in whole)
    assert Path("halves/molecules.json").read_text() == Path("whole/molecules.json").read_text()


def test_molecules_of_a_described_file_are_not_chosen_again(ckgconv):
    code, _, err = ckgconv("pretrain", "all.npz", "--molecules", "4", "--out", "run")
    assert code == 2
    assert err.startswith("Error: The molecules of all.npz were chosen before")


def test_other_properties_are_described_or_learned_at_once(ckgconv):
    Path("all.smi").write_text("CCO\nc1ccccc1\nCC(=O)O\nCCN\nCCCl\n")
    code, _, err = ckgconv("data", "describe", "all.smi", "all.npz", "--molecules", "4", "--properties", "environments")
    assert code == 0, err
    settings = ["--epochs", "1", "--device", "cpu", "--out"]
    assert ckgconv("pretrain", "all.npz", *settings, "halves")[0] == 0
    assert (
        ckgconv("pretrain", "all.smi", "--molecules", "4", "--properties", "environments", *settings, "whole")[0] == 0
    )
    halves, whole = (load_file(f"{folder}/best.safetensors") for folder in ("halves", "whole"))
    assert all(torch.equal(halves[name], whole[name]) for name in whole)
    code, _, err = ckgconv("pretrain", "all.npz", "--properties", "environments", *settings, "chosen")
    assert code == 2
    assert "give --exclude, --molecules and --properties to" in err
    for command in (["pretrain", "all.smi", "--out", "none"], ["data", "describe", "all.smi", "none.npz"]):
        code, _, err = ckgconv(*command, "--properties", "masses")
        assert code == 2
        assert err.startswith("Error: --properties is 'masses': choose one of descriptors, environments, both.")
