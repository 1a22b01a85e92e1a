"""`ckgconv info RECIPE`: the model of a recipe, and its parameters by component."""

import json
from typing import Annotated

import typer
from rich.table import Table

from ckgconv.cli import terminal
from ckgconv.engine.recipe_file import named_or_saved
from ckgconv.nn.models import build_model
from ckgconv.recipe import ModelRecipe
from ckgconv.recipes import RECIPES, with_value


def info(
    name: Annotated[str, typer.Argument(metavar="RECIPE", help=f"A recipe.json, or one of {', '.join(RECIPES)}.")],
    settings: Annotated[list[str] | None, typer.Option("--set", help="Change any recipe value. Repeatable.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for a machine to read.")] = False,
) -> None:
    """Show the trainable parameters of a recipe's model, by component."""
    chosen = named_or_saved(name)
    for setting in settings or []:
        chosen = with_value(chosen, setting)
    components = build_model(chosen.model).parameters_by_component()
    total = sum(components.values())
    if as_json:
        print(json.dumps({"recipe": chosen.name, "parameters": {"trainable": total, "by_component": components}}))
        return
    model = chosen.model
    table = Table(
        title=f"{chosen.name}: {model.kind}, {_depth(model)}width {model.width}, {model.encoding} with {model.steps} "
        f"steps, {_support(model)} support",
    )
    table.add_column("component")
    table.add_column("trainable parameters", justify="right")
    for component, count in components.items():
        table.add_row(component.replace("_", " "), f"{count:,}")
    table.add_section()
    table.add_row("total", f"{total:,}")
    terminal.console().print(table)


def _support(model: ModelRecipe) -> str:
    return f"{model.support}-hop" if isinstance(model.support, int) else model.support.replace("_", " ")


def _depth(model: ModelRecipe) -> str:
    """The number of blocks, for models whose recipe has one."""
    blocks = getattr(model, "blocks", None)
    return "" if blocks is None else f"{blocks} blocks of "
