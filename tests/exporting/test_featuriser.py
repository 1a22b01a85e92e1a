import json

import numpy as np
import pytest

from ckgconv import open_run
from ckgconv.data.molecules import ATOM_SIZES, BOND_SIZES
from ckgconv.data.molecules import read_smiles as read_here
from ckgconv.exporting.comparison import MOLECULES
from ckgconv.exporting.featuriser import featuriser_tables
from ckgconv.exporting.standalone import CannotPredict, read_smiles


def test_the_tables_read_molecules_as_the_package_does(runs):
    tables = json.loads(json.dumps(featuriser_tables(runs["hops"])))
    for smiles in (*MOLECULES[:-1], "[U]", "[2H]C", "C[Si](C)(C)C", "[CH3]", "F[P-](F)(F)(F)(F)F", "*C"):
        ours, theirs = read_here(smiles, "molecule"), read_smiles(smiles, tables)
        assert np.array_equal(ours.x, theirs["x"]), smiles
        assert np.array_equal(ours.edge_index, theirs["edges"]), smiles
        assert np.array_equal(ours.edge_attr, theirs["edge_attr"]), smiles
    assert (
        tuple(len(each["values"]) + (each["name"] not in ("aromatic", "in_ring")) for each in tables["atoms"])
        == ATOM_SIZES
    )
    assert tuple(len(each["values"]) + (each["name"] != "conjugated") for each in tables["bonds"]) == BOND_SIZES


def test_outputs_have_names(runs):
    assert featuriser_tables(runs["hops"])["outputs"] == [{"name": "y", "meaning": "value"}]
    assert featuriser_tables(runs["labels"])["outputs"] == [{"name": "y", "meaning": "probability of 1"}]
    assert [each["name"] for each in featuriser_tables(runs["classes"])["outputs"]] == ["y_0", "y_1", "y_2", "y_3"]


def test_what_the_network_does_not_know_has_a_reason():
    tables = featuriser_tables(open_run("zinc", "cpu"))
    for smiles in ("C1CC", "", " ", "[Na]", "C" * 1001):
        with pytest.raises(CannotPredict):
            read_smiles(smiles, tables)
