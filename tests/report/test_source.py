"""What a report knows of its table: each graph has the SMILES of its row."""

import numpy as np

from ckgconv import train
from ckgconv.cli.initial_options import FeatureOptions
from ckgconv.cli.table_options import TableOptions, table_recipe
from ckgconv.data.molecules import read_smiles
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting
from ckgconv.report.molecule_sections import explained_section
from ckgconv.report.score_sections import uncertainty_section
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


def test_values_among_labels_may_be_negative_and_own_columns_are_explained(tmp_path):
    path = tmp_path / "table.csv"
    rows = [f"{'C' * (place % 9 + 1)}{'ONF'[place % 3]},{place - 60},{place % 2},{place % 5}" for place in range(120)]
    path.write_text("\n".join(["smiles,y,even,ph", *rows]) + "\n")
    chosen = FeatureOptions(["ph"], False).applied(table_recipe(path, TableOptions(target=["y", "even"])))
    for setting in ("model.width=8", "model.blocks=1", "model.steps=3", "training.epochs=1"):
        chosen = with_value(chosen, setting)
    run = train(fitting(chosen), folder=tmp_path / "run", device="cpu")
    source = source_of([run], tmp_path / "run")
    target = source.splits["train"].target
    assert np.isfinite(target).all()
    assert (target[:, 0] < 0).any()
    assert "intervals of level 90% contain" in uncertainty_section(source)
    assert "add up to the prediction minus the baseline" in explained_section(source)
