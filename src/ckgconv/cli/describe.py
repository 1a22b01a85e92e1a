"""`ckgconv data describe`: a file of SMILES → molecules with computed properties, to pretrain on.

It needs RDKit and no GPU; `ckgconv pretrain` reads the file on a machine with a GPU and no RDKit.
"""

from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.data.properties import PROPERTIES
from ckgconv.engine.describe import MOLECULES, Selection, check_packed_name, describe, origin_file, save_described

Exclude = Annotated[
    list[Path] | None, typer.Option(help="Files of molecules to leave out. Repeatable: --exclude a.csv b.csv.")
]
Molecules = Annotated[
    int | None, typer.Option(help=f"How many molecules of the file to use, by default {MOLECULES:,}.")
]
PropertiesOption = Annotated[
    str | None,
    typer.Option("--properties", help=f"What to compute of each: {', '.join(PROPERTIES)}; by default descriptors."),
]


def describe_command(
    source: Annotated[Path, typer.Argument(metavar="SMILES_FILE", help="A SMILES on each line, or a CSV; .gz too.")],
    packed: Annotated[Path, typer.Argument(metavar="PACKED", help="The .npz file to write.")],
    exclude: Exclude = None,
    molecules: Molecules = None,
    seed: Annotated[int, typer.Option(help="Of the choice of molecules.")] = 0,
    properties: PropertiesOption = None,
) -> None:
    """Write molecules with computed properties as targets, for `ckgconv pretrain` on a machine without RDKit."""
    check_packed_name(packed)
    found = describe(selection_of(source, exclude, molecules, seed, properties))
    save_described(found, packed)
    console = terminal.console(soft_wrap=True)
    console.print(str(found.origin.counts))
    console.print(f"written: {packed} and {origin_file(packed)}")


def selection_of(
    source: Path, exclude: Exclude, molecules: Molecules, seed: int, properties: PropertiesOption
) -> Selection:
    """What the options ask for."""
    many = MOLECULES if molecules is None else molecules
    return Selection(source, tuple(exclude or ()), many, seed, properties or "descriptors")
