"""What networks read of a table to predict: the column of SMILES, and the user's own columns of numbers."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ckgconv.data.decimals import marks, parsed
from ckgconv.data.door import LARGEST
from ckgconv.data.table import is_missing, named_column, printable
from ckgconv.data.table_stream import Chunk, TableStream
from ckgconv.uncertainty.parallel import CHUNK, Rows


@dataclass(frozen=True)
class Asked:
    """Columns of a table that a network reads: the SMILES, and the user's own by name."""

    smiles: int  # place
    features: dict[str, int]  # places
    commas: frozenset[str]  # features whose numbers have decimal commas
    said: tuple[str, ...]  # about columns that are read in another way than they are named or written


def asked_columns(table: TableStream, smiles: str, features: Sequence[str]) -> Asked:
    """Look through the columns of features once, since one cell says how all are written."""
    found = named_column(table.columns, smiles, table.path)
    places = {name: table.place(name) for name in features}
    commas = []
    for name, place in places.items():
        written = marks(row[place] for chunk in table.chunks(CHUNK) for row in chunk.rows)
        if written.comma and not written.point:
            commas.append(name)
    said = [f"The SMILES are those of column '{printable(found)}'."] if found != smiles else []
    said += [f"Column '{printable(name)}' of {table.path} has decimal commas: 1,5 is read as 1.5." for name in commas]
    return Asked(table.place(found), places, frozenset(commas), tuple(said))


def handed(chunk: Chunk, asked: Asked) -> Rows:
    """The molecules of a chunk, with the numbers of the network's other columns; what is no number is a reason."""
    reasons, features = list(chunk.reasons), []
    for number, row in enumerate(chunk.rows):
        values = []
        for name, place in asked.features.items():
            try:
                values.append(math.nan if is_missing(row[place]) else _parsed(row[place], name in asked.commas))
            except ValueError as error:
                values.append(math.nan)
                wrong = f"'{printable(row[place])}' in column '{printable(name)}' is {error}, and the network reads it."
                reasons[number] = reasons[number] or wrong
        features.append(values)
    return Rows([row[asked.smiles] for row in chunk.rows], reasons, features if asked.features else None)


def _parsed(text: str, commas: bool) -> float:
    """A number that networks read; the ValueError says what it is instead."""
    try:
        value = parsed(text, commas)
    except ValueError as error:
        raise ValueError("no number") from error
    if not abs(value) <= LARGEST:
        raise ValueError(f"larger than {LARGEST:g}")
    return value
