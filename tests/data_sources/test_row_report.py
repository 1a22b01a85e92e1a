import csv
import json

from ckgconv.data.molecule_table import loaded_table
from ckgconv.data.row_report import row_report
from ckgconv.recipe import DataRecipe

ROWS = [
    *(("CCO", "1", "train"), ("OCC", "1", "train"), ("C(C)O", "2", "test"), ("xx", "1", "train"), ("CC", "", "train")),
    *(("CC(=O)[O-].[Na+]", "1", "train"), ("[2H]C", "1", "val"), ("C[NH3+]", "1", "val"), ("CN", "1", "")),
    *(("C[C@H](N)O", "1", "test"), ("CC(N)O", "1", "test"), ("F/C=C/F", "1", "train"), ("FC=CF", "1", "train")),
]


def test_a_target_of_one_value_in_training_is_told(tmp_path):
    path = tmp_path / "t.csv"
    lines = [f"{'C' * (n + 1)},{int(n > 7)},{n},{'train' if n < 6 else 'val'}" for n in range(10)]
    path.write_text("\n".join(["smiles,y,z,split", *lines]) + "\n")
    recipe = DataRecipe(str(path), targets=("y", "z"), split="column", split_column="split")
    (sentence,) = row_report(loaded_table(recipe), recipe).warnings()
    assert "Target 'y' has one value in all training rows that know it" in sentence


def test_every_row_is_reported(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["smiles,y,split", *(",".join(row) for row in ROWS)]) + "\n")
    recipe = DataRecipe(str(path), targets=("y",), split="column", split_column="split")
    report = row_report(loaded_table(recipe), recipe)
    by_line = {row.line: row for row in report.rows}
    assert len(by_line) == len(ROWS)
    assert (by_line[2].flags, by_line[2].split) == (("leak",), "train")
    assert (by_line[3].flags, by_line[3].duplicate_of) == (("duplicate", "leak"), 2)
    assert (by_line[4].flags, by_line[4].split) == (("duplicate", "conflict", "leak"), "test")
    assert [by_line[line].reason for line in (5, 6, 10)] == [
        *("'xx' is not a valid SMILES.", "Every target is missing.", "The cell of the split column is empty.")
    ]
    assert [by_line[line].flags for line in (7, 8, 9)] == [("fragments",), ("isotopes",), ("charged",)]
    assert [by_line[line].flags for line in range(11, 15)] == [("stereo",), ("undefined_stereo",)] * 2
    counts = report.counts
    assert (counts["rows"], counts["unused"], counts["duplicate"], counts["conflict"], counts["leak"]) == (
        13,
        3,
        2,
        1,
        3,
    )
    assert (counts["train"], counts["val"], counts["test"]) == (5, 2, 3)
    unused, duplicates, leak, constant = report.warnings()
    assert "3 of 13 rows" in unused
    assert "2 rows" in duplicates
    assert "1 of them with other targets" in duplicates
    assert "3 rows" in leak
    assert "Target 'y' has one value" in constant
    assert "several fragments (salts, mixtures): 1," in report.notes()[0]
    report.write(tmp_path)
    assert json.loads((tmp_path / "rows.json").read_text()) == counts
    lines = list(csv.DictReader((tmp_path / "rows.csv").read_text().splitlines()))
    assert lines[2] == {
        **{"line": "4", "split": "test", "flags": "duplicate conflict leak", "duplicate_of": "2", "reason": ""}
    }
