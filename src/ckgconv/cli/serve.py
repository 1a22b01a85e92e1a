"""`ckgconv serve RUN …`: a page in the browser, and an interface over HTTP, to try a trained network."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import InputError, check_choice, require
from ckgconv.cli import terminal
from ckgconv.engine.setup import process_count
from ckgconv.engine.trained import TRAINED


def serve_command(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help=f"Folder of a run, or one of {', '.join(TRAINED)}; several: an ensemble."
        ),
    ],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0 admits other machines.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0 finds a free one.")] = 8000,
    name: Annotated[
        list[str] | None, typer.Option(help="A host name under which the page may be opened, besides localhost.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Most rows of a CSV.")] = 20_000,
    atoms: Annotated[int, typer.Option(min=1, help="Most atoms of a molecule.")] = 250,
    seconds: Annotated[float, typer.Option(min=0.1, help="Most seconds for a molecule.")] = 10.0,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes that compute.")] = 2,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Open a page on this machine to predict molecules with a trained network; Ctrl-C ends it."""
    require(process_count() == 1, "A server starts its own processes: start it once, without torchrun.")
    check_choice("device", device, ("auto", "cpu", "cuda"))
    try:
        from ckgconv.serve.limits import Limits
        from ckgconv.serve.server import serve
    except ImportError as error:
        raise InputError(
            f"The server needs {error.name}, which is not installed: run pip install 'ckgconv[serve]'."
        ) from error
    console = terminal.console(soft_wrap=True)
    serve(
        [str(folder) for folder in folders],
        host,
        port,
        names=name or (),
        device=device,
        limits=replace(Limits(), rows=rows, atoms=atoms, seconds=seconds, workers=workers),
        tell=lambda line: console.print(line, highlight=False),
    )
