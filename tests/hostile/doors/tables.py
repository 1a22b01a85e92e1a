"""CSV files: separators, quotes, encodings, lengths of lines, numbers."""

from pathlib import Path

from hostile.door import Door
from hostile.mutations import FLOATS, damaged
from hypothesis import strategies as st

from ckgconv.data import load
from ckgconv.data.tables import read_table
from ckgconv.recipe import DataRecipe

CELLS = [
    "C",
    "CC",
    "CCO",
    "c1ccccc1",
    "xx",
    "",
    "1",
    "-2.5",
    "nan",
    "inf",
    "1e38",
    "1_0",
    "0x1",
    "١",
    "=1+1",
    "\x1b[2J",
]
CELLS += [str(number) for number in FLOATS] + [
    '"',
    '""',
    '"a',
    'b"',
    "a,b",
    '"a,b"',
    '"a\nb"',
    "\r",
    "\x00",
    "é",
    ";",
    "\t",
]
HEADERS = [
    "smiles,y",
    "smiles,y,name",
    "y,smiles",
    "smiles;y",
    "smiles",
    "smiles,y,y",
    '"smiles","y"',
    "\ufeffsmiles,y",
    "",
]


@st.composite
def table(draw: st.DrawFn) -> bytes:
    """A header, good rows, and some that are not."""
    rows = [f"{'C' * (1 + row % 7)},{row}.5" for row in range(draw(st.sampled_from([0, 12, 25, 25])))]
    for _ in range(draw(st.integers(0, 3))):
        bad = ",".join(draw(st.lists(st.sampled_from(CELLS), max_size=5)))
        rows.insert(draw(st.integers(0, len(rows))), bad)
    header = draw(st.sampled_from(HEADERS) | st.just(HEADERS[0]))
    lines = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])).join([header, *rows])
    return lines.encode(draw(st.sampled_from(["utf-8", "utf-8", "utf-8", "utf-16"])), "replace")


def enter(case: bytes, folder: Path) -> None:
    path = folder / "table.csv"
    path.write_bytes(case)
    read = read_table(path)
    assert all(len(row) == len(read.columns) for row in read.rows)
    # No row has been swallowed: without quotes a row is a line.
    if b'"' not in case and b"\x00" not in case:
        text = case.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
        assert len(read.rows) == sum(1 for line in text.split("\n") if line) - 1
    data = load(DataRecipe(str(path), targets=("y",), split="random"))
    assert 10 <= data.num_graphs <= len(read.rows)
    assert (data.y.abs() <= 1e18).all()
    data.batch(data.train)


DOOR = Door("tables", table() | damaged(table(), most=2), enter)
