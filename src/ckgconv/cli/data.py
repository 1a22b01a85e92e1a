"""`ckgconv data list|info|build|describe`: list the named data sets, count their graphs, write packed files."""

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ckgconv.cli import terminal
from ckgconv.cli.describe import describe_command
from ckgconv.data import CATALOGUE, PackedDataset, build, data_folder, find, load
from ckgconv.data.packed import SPLITS
from ckgconv.recipe import DataRecipe

data_commands = typer.Typer(no_args_is_help=True, help="Data sets: list, info, build, describe.")
data_commands.command("describe")(describe_command)
Folder = Annotated[Path | None, typer.Option("--data-dir", help="Where packed files are, by default $CKGCONV_DATA.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")]


@data_commands.command("list")
def list_command(data_dir: Folder = None, as_json: Json = False) -> None:
    """List the named data sets, and where each comes from."""
    folder = data_folder(data_dir)
    sources = {name: _source(name, folder) for name in CATALOGUE}
    if as_json:
        print(json.dumps({name: {"task": CATALOGUE[name].task, "source": sources[name]} for name in CATALOGUE}))
        return
    table = Table("name", "task", "source")
    for name, entry in CATALOGUE.items():
        table.add_row(name, entry.task, sources[name])
    terminal.console().print(table)


@data_commands.command("info")
def info_command(
    name: Annotated[str, typer.Argument(help="A named data set, a packed .npz file or a folder of packed files.")],
    limit: Annotated[int | None, typer.Option(help="Only the first graphs of each split.")] = None,
    data_dir: Folder = None,
    as_json: Json = False,
) -> None:
    """Count the graphs, nodes and edges of a data set."""
    counts = statistics(load(DataRecipe(name, limit=limit), data_dir))
    if as_json:
        print(json.dumps({"name": name, **counts}))
        return
    table = Table(title=name, show_header=False)
    for key, value in counts.items():
        table.add_row(key.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:,.2f}")
    terminal.console().print(table)


@data_commands.command("build")
def build_command(
    name: Annotated[str, typer.Argument(help="A named data set.")],
    generate: Annotated[
        bool, typer.Option("--generate", help="Block models: draw with --seed instead of downloading.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of --generate.")] = 0,
    data_dir: Folder = None,
) -> None:
    """Write the packed file of a named data set, by download or by --generate."""
    path = build(name, data_folder(data_dir), seed if generate else None)
    terminal.console().print(f"written: {path}")


def statistics(data: PackedDataset) -> dict[str, int | float]:
    """Numbers of graphs, nodes and edges; edges are directed, so an undirected one counts twice.

    The sizes of the splits are in graphs, or in nodes where nodes have splits of their own.
    """
    suffix = "" if data.node_split is None else "_nodes"
    rows = {name: len(data.split(name) if data.node_split is None else data.target_rows(name)) for name in SPLITS}
    return {
        "graphs": data.num_graphs,
        **{f"{name}{suffix}": count for name, count in rows.items()},
        "nodes": int(data.node_ptr[-1]),
        "directed_edges": int(data.edge_ptr[-1]),
        "average_nodes": float(data.node_ptr[-1]) / data.num_graphs,
        "average_directed_edges": float(data.edge_ptr[-1]) / data.num_graphs,
        "smallest": int(data.node_ptr.diff().min()),
        "largest": int(data.node_ptr.diff().max()),
    }


def _source(name: str, folder: Path) -> str:
    path = find(name, folder)
    if path is None and CATALOGUE[name].load is not None:
        return "read by its package"
    if path is None and CATALOGUE[name].seed is not None:
        return "generated here"
    if path is None:
        return "official download" + (", or generated here" if CATALOGUE[name].generate else "")
    return "in the package" if path.parent != folder else str(path)
