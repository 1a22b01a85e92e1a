import pytest
import torch

from ckgconv import InputError
from ckgconv.data import load
from ckgconv.data.packed_molecules import read_molecules
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe


def write(path, *lines):
    path.write_text("\n".join(lines) + "\n")
    return path


def rows(count):
    return [f"{'C' * (length + 1)},{length}.5,{length % 2}" for length in range(count)]


def test_invalid_and_unlabelled_rows_are_left_out_and_missing_targets_masked(tmp_path):
    path = write(tmp_path / "t.csv", "smiles,y,z", "xx,1,1", "CCC,,", "CCO,,1", *rows(20))
    data = load(DataRecipe(str(path), targets=("y", "z"), split="random"))
    assert data.num_graphs == 21
    assert data.y.shape == (21, 2)
    assert torch.isnan(data.y).sum() == 1
    assert len(data.train) == 16


def test_a_split_has_a_seed_that_torch_takes(tmp_path):
    path = write(tmp_path / "t.csv", "smiles,y,z", *rows(10))
    with pytest.raises(InputError, match=r"data.split_seed is 1000.*: give at most 2,147,483,647"):
        load(DataRecipe(str(path), targets=("y",), split="random", split_seed=10**20))


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_leaves_some_row(tmp_path, limit):
    path = write(tmp_path / "t.csv", "smiles,y,z", *rows(10))
    with pytest.raises(InputError, match=f"data.limit is {limit}: give at least 1 row"):
        load(DataRecipe(str(path), targets=("y",), split="random", limit=limit))


def test_scaffold_split_and_limit(tmp_path):
    rings = [f"C1{'C' * size}1" for size in range(1, 11)]
    path = write(
        tmp_path / "t.csv", "smiles,y", *(f"{ring}{'O' * (k > 0)}{'C' * k},{k}" for ring in rings for k in range(4))
    )
    data = load(DataRecipe(str(path), targets=("y",), split="scaffold", limit=3))
    assert [len(data.split(name)) for name in ("train", "val", "test")] == [3, 3, 3]


def test_quotes_commas_and_byte_order_marks_are_read(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'\xef\xbb\xbfsmiles,"name, long",y\nCCO,"a, b",1\n\nCC\n')
    table = read_table(path)
    assert table.columns == ("smiles", "name, long", "y")
    assert table.rows == (("CCO", "a, b", "1"), ("CC", "", ""))


@pytest.mark.parametrize(
    ("lines", "recipe", "words"),
    [
        ([], {}, "is empty"),
        (["smiles,y"], {}, "no rows"),
        (["smiles,y,y", "C,1,2"], {}, "two columns 'y'"),
        (["smiles,y", "C,1,2"], {}, "Line 2 .* more cells"),
        (["smile,y", "C,1"], {}, "no column 'smiles': its columns are smile, y"),
        (["smiles,x", "C,1"], {}, "no column 'y'"),
        (["smiles,y", "C,", "CC,nan"], {}, "Every value of target 'y' .* missing"),
        (["smiles,y", "C,high"], {}, "Line 2 .* 'high' in column 'y'"),
        (["smiles,y", "C,inf"], {}, "finite"),
        (["smiles,y", "C,1e38"], {}, r"Line 2 .* '1e38' .* at most 1e\+18"),
        (["smiles,y", "", "C,1", "", "C,high"], {}, "Line 5 .* 'high'"),
        (["smiles,y", "xx,1", "yy,2"], {}, "No row .* valid SMILES"),
        (["smiles,y", "C,1"], {"targets": ()}, "No target column"),
        (["smiles,y", "C,1", "CC,2"], {}, "2 usable rows"),
    ],
)
def test_bad_tables_are_refused(tmp_path, lines, recipe, words):
    path = tmp_path / "t.csv"
    path.write_text("".join(line + "\n" for line in lines))
    with pytest.raises(InputError, match=words):
        load(DataRecipe(str(path), **{"targets": ("y",), "split": "random", **recipe}))


def test_a_binary_file_is_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(bytes(range(128, 256)))
    with pytest.raises(InputError, match="cannot be read as a CSV"):
        read_table(tmp_path / "t.csv")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        # Closed by the next quote, 16 rows later; never closed; closed in the middle of a cell.
        (
            "smiles,name,y\n" + "\n".join('CC,"a,1' if row in (3, 19) else "CC,a,1" for row in range(20)),
            "Line 5 of|in line 5",
        ),
        ('smiles,y\nCCO,1\nCC,"2\nCCC,3\n', "Line 3|in line 3"),
        ('smiles,y\nCCO,1\n"CC"C,2\n', "in line 3"),
        ('smiles,"a\nb"\nCC,1\n', "Line 1 of .* goes on to line 2"),
    ],
)
def test_a_quote_that_is_not_closed_swallows_no_rows(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        read_table(tmp_path / "t.csv")


def test_many_columns_and_escapes_in_names(tmp_path):
    path = tmp_path / "t.csv"
    names = [f"column{number}" for number in range(100_000)]
    path.write_text(",".join(["\x1b[31msmiles", *names]) + "\nC\n")
    with pytest.raises(InputError, match="and 99,981 others") as refusal:
        read_table(path).column("smiles")
    assert "\x1b" not in str(refusal.value)
    assert r"\x1b[31msmiles" in str(refusal.value)
    path.write_text("\x1b[31msmiles,\x1b[31msmiles\nC,C\n")
    with pytest.raises(InputError, match="two columns") as refusal:
        read_table(path)
    assert "\x1b" not in str(refusal.value)
    path.write_text(",".join(names) + "\n" + "C\n" * 300)
    with pytest.raises(InputError, match="30,000,000 cells"):
        read_table(path)


def test_one_large_molecule_leaves_the_file_as_it_is(tmp_path):
    large = ["C" * 33_000, "C" * 3_000, "C" * 1_001]
    path = write(tmp_path / "t.csv", "smiles,y,z", *rows(20), *(f"{each},1,1" for each in large), "O,1,1")
    data = load(DataRecipe(str(path), targets=("y",), split="random"))
    assert data.num_graphs == 21
    data = load(DataRecipe(str(path), targets=("y",), split="random", most_atoms=3_000))
    assert data.num_graphs == 23
    molecules, reasons = read_molecules(["CC", *large], "molecule")
    assert [each is None for each in molecules] == [False, True, True, True]
    assert "33,000 letters, too many for the 1,000 atoms allowed" in reasons[1]
    assert "1,001 atoms, more than the 1,000 allowed (data.most_atoms)" in reasons[3]
    assert all(len(reason) < 200 for reason in reasons)
