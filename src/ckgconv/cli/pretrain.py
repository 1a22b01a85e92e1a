"""`ckgconv pretrain`: a file of SMILES → a network that has learned their descriptors, to begin other runs with."""

from pathlib import Path
from typing import Annotated

import typer

from ckgconv.cli import processes, terminal
from ckgconv.cli.curve import draw_curve
from ckgconv.cli.watch import ProgressBar
from ckgconv.engine.pretrain import Pretraining, pretrain


def pretrain_command(
    source: Annotated[Path, typer.Argument(metavar="SMILES_FILE", help="A SMILES on each line, or a CSV; .gz too.")],
    out: Annotated[Path, typer.Option(help="Folder for the run.")],
    exclude: Annotated[
        list[Path] | None, typer.Option(help="Files of molecules to leave out. Repeatable: --exclude a.csv b.csv.")
    ] = None,
    molecules: Annotated[int, typer.Option(help="How many molecules of the file to use.")] = 50_000,
    epochs: Annotated[int, typer.Option(help="Passes over the molecules.")] = 6,
    seed: Annotated[int, typer.Option(help="Of the choice of molecules and of the run.")] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
) -> None:
    """Train a network on computed descriptors of molecules; `ckgconv train --init OUT` begins with it."""
    console = terminal.console(soft_wrap=True)
    bar = ProgressBar(console)
    try:
        plan = Pretraining(source, tuple(exclude or ()), molecules, epochs, seed)
        run, chosen = pretrain(plan, out, bar, device)
    finally:
        bar.stop()
    if not processes.is_first():
        return
    draw_curve(run.record, out / "curve.png")
    best = run.record.best
    assert best is not None
    console.print(
        f"{len(chosen.smiles):,} molecules of {chosen.drawn:,} drawn: {chosen.excluded:,} excluded, "
        f"{chosen.repeated:,} repeated, {chosen.unreadable:,} unreadable"
    )
    console.print(f"best epoch {best.epoch + 1}: mean absolute error {best.val:.4f} standard deviations, validation")
    console.print(f"run: {out}")
