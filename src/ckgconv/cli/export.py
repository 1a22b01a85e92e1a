"""`ckgconv export RUN -o FOLDER`: a network that runs without this package."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import terminal
from ckgconv.engine.opened import open_network
from ckgconv.files import valid_json


class Format(StrEnum):
    torch = "torch"
    onnx = "onnx"
    both = "both"


def export_command(
    run: Annotated[str, typer.Argument(help="The folder of a run, or the name of a trained network.")],
    out: Annotated[Path, typer.Option("-o", "--out", help="Folder to write.")],
    format: Annotated[Format, typer.Option(help="A torch.export program, ONNX, or both.")] = Format.both,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Export the network of a run, and compare its predictions in a process without ckgconv."""
    from ckgconv.exporting.folder import export_run  # imported here, since torch's exporter takes a second

    done = export_run(open_network(run, "cpu"), out, format.value)
    if as_json:
        found = {"folder": str(done.folder), "molecules": done.molecules, "torch": done.torch, "onnx": done.onnx}
        print(valid_json(found))
        return
    console = terminal.console(soft_wrap=True)
    for name, difference in (("model.pt2", done.torch), ("model.onnx", done.onnx)):
        if difference is not None:
            console.print(
                f"{out / name}: largest difference from the run {difference:.2e}, over {done.molecules} molecules, in "
                f"a process without ckgconv"
            )
    console.print(f"Use: {out / 'README.md'}")
