"""Tables of molecules by the ending of their name: CSV, TSV, SMI and SDF, plain or as .gz, and parquet.

Every reader gives the same `Table` of text; what a row is made into is decided later.
"""

from collections.abc import Callable
from pathlib import Path

from ckgconv.checks import InputError
from ckgconv.data.delimited import read_delimited
from ckgconv.data.molecules import MOST_ATOMS
from ckgconv.data.packed_molecules import pack_molecules, read_molecules
from ckgconv.data.parquet import read_parquet
from ckgconv.data.sdf import read_sdf
from ckgconv.data.smi import read_smi
from ckgconv.data.table import Table

READERS: dict[str, Callable[[Path], Table]] = {
    ".csv": read_delimited,
    ".tsv": read_delimited,
    ".tab": read_delimited,
    ".smi": read_smi,
    ".smiles": read_smi,
    ".sdf": read_sdf,
    ".sd": read_sdf,
    ".parquet": read_parquet,
    ".pq": read_parquet,
}
# Files of these endings may be compressed as a whole; parquet is compressed inside.
COMPRESSED = (".csv", ".tsv", ".tab", ".smi", ".smiles", ".sdf", ".sd")


def ending(path: Path | str) -> str:
    """The ending that chooses the reader of a table, without .gz; "" where no reader has it."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    if suffixes[-1:] == [".gz"]:
        return suffixes[0] if suffixes[0] in COMPRESSED else ""
    return suffixes[-1] if suffixes and suffixes[-1] in READERS else ""


def is_table(path: Path | str) -> bool:
    """Whether the name of a file is that of a table of molecules."""
    return bool(ending(path))


def stem(path: Path) -> str:
    """The name of a table without its endings."""
    name = path.name[: -len(".gz")] if path.suffix.lower() == ".gz" else path.name
    return Path(name).stem


def read_table(path: Path, most_atoms: int = MOST_ATOMS) -> Table:
    """Read a table, by the ending of its name; `most_atoms` of a structure in an SDF."""
    found = ending(path)
    if not found:
        raise InputError(f"{path} is no table: give a file that ends in {', '.join(READERS)}, or .gz after these.")
    return read_sdf(path, most_atoms) if READERS[found] is read_sdf else READERS[found](path)


__all__ = ["READERS", "Table", "ending", "is_table", "pack_molecules", "read_molecules", "read_table", "stem"]
