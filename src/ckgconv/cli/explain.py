"""`ckgconv explain RUN … MOLECULE`: what each atom and bond contributes to a prediction, as numbers and drawings."""

from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import Progress
from rich.table import Table as RichTable

from ckgconv.checks import check_choice, require
from ckgconv.cli import processes, terminal
from ckgconv.cli.feature_values import given_features
from ckgconv.data.table_stream import stream_table
from ckgconv.data.tables import is_table
from ckgconv.engine.members import all_members
from ckgconv.engine.opened import open_network
from ckgconv.engine.trained import TRAINED
from ckgconv.explanation.drawing import draw
from ckgconv.explanation.explainer import Explainer, Explanation, output_names
from ckgconv.explanation.folder import explain_all, write_explained
from ckgconv.explanation.kernels import draw_kernel, kernel_around
from ckgconv.explanation.methods import METHODS
from ckgconv.explanation.substructures import KINDS, Substructure
from ckgconv.files import check_names_file, valid_json, write_output
from ckgconv.uncertainty.asked_columns import asked_columns, handed

SHOWN = 5  # substructures at either end


def explain_command(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="RUN...", help=f"Folder of a run, or one of {', '.join(TRAINED)}; several: their mean."),
    ],
    what: Annotated[str, typer.Argument(metavar="MOLECULE", help="A SMILES, or a table of molecules.")],
    target: Annotated[
        str | None,
        typer.Option(help="Name or number of the target, by default the first; of classes the most probable one."),
    ] = None,
    method: Annotated[str, typer.Option(help=f"One of {', '.join(METHODS)}.")] = METHODS[0],
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", help="Drawing of a molecule, .svg; folder of what is written of a table."),
    ] = None,
    feature: Annotated[
        list[str] | None, typer.Option(help="Value of an own column that the run reads, ph=7.4. Repeatable.")
    ] = None,
    smiles: Annotated[str | None, typer.Option(help="Table: column of the SMILES, by default as in training.")] = None,
    limit: Annotated[int | None, typer.Option(help="Table: explain only so many molecules, the first ones.")] = None,
    fragments: Annotated[str, typer.Option(help=f"Table: kind of substructures, {', '.join(KINDS)}.")] = KINDS[0],
    least: Annotated[int, typer.Option(help="Table: leave out substructures that occur less often.")] = 1,
    kernel: Annotated[
        int | None, typer.Option(help="Draw the kernel ψ around this atom instead, numbered from 0.")
    ] = None,
    layer: Annotated[int, typer.Option(help="With --kernel: which layer, from 1.")] = 1,
    channel: Annotated[list[int] | None, typer.Option(help="With --kernel: which channels, from 0.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Explain predictions for molecules: contributions of atoms and bonds, whether they add up, and the residual."""
    check_choice("--method", method, METHODS)
    check_choice("--fragments", fragments, KINDS)
    require(limit is None or limit > 0, f"--limit is {limit}: give at least 1.")
    explainer = Explainer([open_network(folder, device) for folder in all_members(folders)], target, method)  # type: ignore[arg-type]
    if is_table(what):
        require(kernel is None, "--kernel draws one molecule: give a SMILES in place of the table.")
        require(not feature, "--feature belongs to one molecule: a table has columns, so leave it out.")
        _explain_table(explainer, Path(what), smiles, limit, (fragments, least), out, as_json)
        return
    require(
        smiles is None and limit is None, "--smiles and --limit belong to a table: leave them out with one molecule."
    )
    out = Path("kernel.svg") if kernel is not None and out is None else out
    place = None if out is None else _drawing(out)
    if kernel is not None and place is not None:
        svg = draw_kernel(kernel_around(explainer, what, kernel, layer), channel)
        _write_drawing(place, svg, as_json)
        return
    found = explainer(what, given_features(explainer.columns, feature or []))
    if processes.is_first():
        _show(found, as_json)
        if place is not None:
            _write_drawing(place, draw(found, numbers=True), as_json)


def _explain_table(
    explainer: Explainer,
    path: Path,
    smiles: str | None,
    limit: int | None,
    fragments: tuple[str, int],
    out: Path | None,
    as_json: bool,
) -> None:
    require(path.exists(), f"{path} does not exist: check the path of the table to explain.")
    recipe = explainer.runs[0].recipe.data
    names = [output_names(explainer.runs[0])[output] for output in explainer.outputs]
    require(
        len(names) == 1,
        f"Contributions to different classes cannot be put together: choose one of them, --target {names[0]!r}.",
    )
    table = stream_table(path, recipe.most_atoms)
    asked = asked_columns(table, smiles or recipe.smiles, recipe.features)
    (chunk,) = islice(table.chunks(limit or table.total), 1)
    rows = handed(chunk, asked)
    column = rows.smiles
    for sentence in () if as_json else asked.said:
        terminal.console(stderr=True, soft_wrap=True).print(sentence)
    out = Path("explanations") if out is None else out
    with Progress(console=terminal.console(stderr=True), disable=as_json or not processes.is_first()) as progress:
        task = progress.add_task("explaining", total=len(column))
        explained = explain_all(
            explainer, column, lambda count: progress.update(task, advance=count), rows.features, rows.reasons
        )
    if not processes.is_first():
        return
    kind, least = fragments
    found = write_explained(out, explained, kind, least)  # type: ignore[arg-type]
    counts = {"rows": len(column), "explained": len(explained.known), "invalid": len(column) - len(explained.known)}
    if as_json:
        print(valid_json({"out": str(out), **counts, "substructures": [asdict(each) for each in found]}))
        return
    console = terminal.console(soft_wrap=True)
    for each in explained.known[:1]:
        worst = max(explained.known, key=lambda one: abs(one.residual))
        adds = "add up" if each.adds_up else "do not add up"
        console.print(f"contributions to {each.unit} {adds}; largest residual {abs(worst.residual):.1e}")
        console.print(_table_of(found, each.unit))
    console.print(f"{counts['explained']} of {counts['rows']} rows explained, {counts['invalid']} invalid: {out}")


def _show(found: Explanation, as_json: bool) -> None:
    if as_json:
        print(valid_json({**asdict(found), "adds_up": found.adds_up, "total": found.total}))
        return
    from rdkit import Chem

    symbols = [atom.GetSymbol() for atom in Chem.MolFromSmiles(found.smiles).GetAtoms()]
    table = RichTable("what", "contribution", title=f"contributions to {terminal.plain(found.unit)}")
    named = [
        (f"atom {symbol}{atom}", value) for atom, (symbol, value) in enumerate(zip(symbols, found.atoms, strict=True))
    ]
    named += [
        (f"bond {symbols[i]}{i}-{symbols[j]}{j}", value) for (i, j), value in zip(found.ends, found.bonds, strict=True)
    ]
    if found.descriptors:
        named.append(("descriptors", found.descriptors))
    named += [(f"column {terminal.plain(name)}", value) for name, value in found.features.items()]
    for name, value in sorted(named, key=lambda each: -abs(each[1])):
        table.add_row(name, f"{value:+.4f}")
    console = terminal.console(soft_wrap=True)
    console.print(table)
    mean = f", mean of {found.members} runs" if found.members > 1 else ""
    console.print(f"prediction {found.prediction:.4f}, baseline {found.baseline:.4f}{mean}")
    console.print(found.sentence())


def _table_of(found: list[Substructure], unit: str) -> RichTable:
    table = RichTable("substructure", "mean", "s.d.", "n", title=f"mean contribution to {terminal.plain(unit)}")
    shown = found if len(found) <= 2 * SHOWN else [*found[:SHOWN], *found[-SHOWN:]]
    for each in shown:
        table.add_row(each.name, f"{each.mean:+.3f}", f"{each.std:.3f}" if each.n > 1 else "", str(each.n))
    return table


def _drawing(out: Path) -> Path:
    """Where a drawing is written: the .svg that was named, or one in the folder that was."""
    out = out / "molecule.svg" if out.is_dir() else out
    check_names_file(out)
    require(out.suffix.lower() == ".svg", f"{out} is no .svg, the form of a drawing: choose another name with -o.")
    return out


def _write_drawing(out: Path, svg: str, quiet: bool) -> None:
    write_output(out, lambda part: part.write_text(svg, encoding="utf-8"))
    if not quiet:
        terminal.console(soft_wrap=True).print(f"drawing: {out}")
