"""Tables that are not CSV: gzip, SMI, SDF and parquet, with sizes that lie and contents that repeat."""

import gzip
import io
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hostile.door import Door
from hostile.doors.tables import CELLS, table
from hostile.mutations import damaged
from hypothesis import strategies as st
from rdkit import Chem

from ckgconv.data.tables import read_table

# The first byte of a case chooses the ending of the file, since a case is bytes.
ENDINGS = (".csv.gz", ".smi", ".sdf", ".parquet", ".tsv", ".smi.gz", ".sdf.gz")
BLOCKS = [Chem.MolToMolBlock(Chem.MolFromSmiles(smiles)) for smiles in ("C", "CCO", "c1ccccc1", "[Na+].[Cl-]")]
V3000 = Chem.MolToV3KMolBlock(Chem.MolFromSmiles("CCO"))
PIECES = [
    *BLOCKS,
    V3000,
    "\n",
    "M  END\n",
    "$$$$\n",
    "> <y>\n1.5\n\n",
    ">  <>\n\n",
    "> <smiles>\nC\n",
    ">\n",
    "999999  0",
]


def _records(parts: list[str]) -> bytes:
    return "".join(parts).encode()


def _parquet(names: list[str], cells: list[list[str]], repeat: int) -> bytes:
    """Columns of texts; one of them repeats a text as often as a dictionary makes small."""
    columns = {name: (column * 20)[:20] for name, column in zip(names, cells, strict=True)}
    columns["long"] = ["C" * repeat] * 20
    buffer = io.BytesIO()
    pq.write_table(pa.table({name: [repr(cell) for cell in column] for name, column in columns.items()}), buffer)
    return buffer.getvalue()


def _packed(content: bytes, zeros: int) -> bytes:
    return gzip.compress(content + b"C,1\n" * zeros, mtime=0)


CELL = st.sampled_from(CELLS)
TEXTS = st.lists(st.lists(CELL, max_size=4).map(" ".join), max_size=20).map(lambda lines: "\n".join(lines).encode())
RECORDS = st.lists(st.sampled_from(PIECES), max_size=8).map(_records)
ARROW = st.builds(
    _parquet,
    st.just(["smiles", "y"]),
    st.lists(st.lists(CELL, min_size=1), min_size=2, max_size=2),
    st.sampled_from([1, 10**6]),
)
PACKED = st.builds(_packed, table(), st.sampled_from([0, 0, 10**6]))


@st.composite
def cases(draw: st.DrawFn) -> bytes:
    number = draw(st.integers(0, len(ENDINGS) - 1))
    content = {
        ".csv.gz": PACKED,
        ".smi": TEXTS,
        ".sdf": RECORDS,
        ".parquet": ARROW,
        ".tsv": table(),
        ".smi.gz": TEXTS.map(lambda text: gzip.compress(text, mtime=0)),
        ".sdf.gz": RECORDS.map(gzip.compress),
    }[ENDINGS[number]]
    return bytes([number]) + draw(content | damaged(content, most=3))


def enter(case: bytes, folder: Path) -> None:
    path = folder / ("table" + ENDINGS[case[0] % len(ENDINGS)])
    path.write_bytes(case[1:])
    read = read_table(path)
    assert read.rows
    assert len(read.lines) == len(read.rows)
    assert all(len(row) == len(read.columns) for row in read.rows)
    assert len(read.reasons) in (0, len(read.rows))


DOOR = Door("table_formats", cases(), enter)
