"""`ckgconv pretrain`: a file of SMILES → a network that has learned properties of them, to begin other runs with."""

from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import require
from ckgconv.cli import processes, terminal
from ckgconv.cli.curve import draw_curve
from ckgconv.cli.describe import Exclude, Molecules, PropertiesOption, selection_of
from ckgconv.cli.watch import ProgressBar
from ckgconv.engine.describe import DescribedMolecules, describe, load_described
from ckgconv.engine.pretrain import Pretraining, pretrain


def pretrain_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="MOLECULES", help="SMILES, on each line or in a CSV; or what data describe has written."
        ),
    ],
    out: Annotated[Path, typer.Option(help="Folder for the run.")],
    exclude: Exclude = None,
    molecules: Molecules = None,
    properties: PropertiesOption = None,
    epochs: Annotated[int, typer.Option(help="Passes over the molecules.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the choice of molecules and of the run.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="32, tf32, bf16 or 64.")] = "32",
) -> None:
    """Train a network on computed properties of molecules; `ckgconv train --init OUT` begins with it."""
    console = terminal.console(soft_wrap=True)
    found = _described(source, exclude, molecules, seed, properties)
    bar = ProgressBar(console)
    try:
        run = pretrain(found, Pretraining(epochs, seed, device, precision), out, bar)
    finally:
        bar.stop()
    if not processes.is_first():
        return
    draw_curve(run.record, out / "curve.png")
    best = run.record.best
    assert best is not None
    console.print(str(found.origin.counts))
    console.print(f"best epoch {best.epoch + 1}: mean absolute error {best.val:.4f} standard deviations, validation")
    console.print(f"run: {out}")


def _described(
    source: Path, exclude: Exclude, molecules: Molecules, seed: int, properties: PropertiesOption
) -> DescribedMolecules:
    """The molecules of a packed file as they are, those of another file by the selection."""
    if source.suffix != ".npz":
        return describe(selection_of(source, exclude, molecules, seed, properties))
    require(
        not exclude and molecules is None and properties is None,
        f"The molecules of {source} were chosen before: give --exclude, --molecules and --properties to 'ckgconv data "
        f"describe'.",
    )
    return load_described(source)
