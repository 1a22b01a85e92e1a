"""`ckgconv export RUN … -o FOLDER`: a network, or several as one, that runs without this package."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.engine.ensemble import open_networks
from ckgconv.engine.members import all_members
from ckgconv.engine.opened import open_network
from ckgconv.files import valid_json


class Format(StrEnum):
    torch = "torch"
    onnx = "onnx"
    both = "both"


def export_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folder of a run or an ensemble, or a trained network by name; several: as one."
        ),
    ],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write.")],
    format: Annotated[Format, typer.Option(help="A torch.export program, ONNX, or both.")] = Format.both,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Export the network of a run, or several as one, and compare predictions in a process without ckgconv."""
    from ckgconv.exporting.folder import export_runs  # imported here, since torch's exporter takes a second

    paths = all_members(folders)
    runs = (open_network(paths[0], "cpu"),) if len(paths) == 1 else open_networks(paths, "cpu").runs
    done = export_runs(runs, out, format.value)
    if as_json:
        found = {"folder": str(done.folder), "molecules": done.molecules, "torch": done.torch, "onnx": done.onnx}
        print(valid_json(found))
        return
    console = terminal.console(soft_wrap=True)
    for name, difference in (("model.pt2", done.torch), ("model.onnx", done.onnx)):
        if difference is not None:
            console.print(
                f"{out / name}: largest difference from ckgconv {difference:.2e}, over {done.molecules} molecules, in "
                f"a process without ckgconv"
            )
    console.print(f"Use: {out / 'README.md'}")
