"""What a report knows of its table: each graph has the SMILES of its row."""

from ckgconv.data.molecules import read_smiles
from ckgconv.report.source import repeated, source_of


def test_graphs_have_the_smiles_of_their_rows(run):
    source = source_of([run], run.folder)
    data, table = run.learner.data, source.table
    assert set(table.smiles) == set(range(data.num_graphs))
    assert (table.rows, len(table.left_out), table.unused) == (42, 1, 0)
    assert table.left_out[0][:2] == (42, "<img src=x>")
    for graph, smiles in table.smiles.items():
        start, end = data.node_ptr[graph], data.node_ptr[graph + 1]
        assert (data.x[start:end].numpy() == read_smiles(smiles, "molecule").x).all()
    assert sum(len(each.graphs) for each in source.splits.values()) == data.num_graphs
    assert source.uncertainty is not None
    assert source.names[1] == "b"


def test_repeated_molecules_are_counted_by_structure():
    assert repeated(["CCO", "OCC", "CC"]) == 1
