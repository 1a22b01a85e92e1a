"""Options of a command in groups: each group is a frozen dataclass in a file of its own.

    @dataclass(frozen=True)
    class TableOptions:
        smiles: Annotated[str, typer.Option("--smiles", help="Column of the SMILES.")] = "smiles"

    @with_groups
    def train_command(what: …, table: TableOptions) -> None: ...

Typer sees the fields of the groups as parameters of the command, each with its own help text and default; the command
receives the groups. So a group gains an option without a change to its commands.
"""

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, get_type_hints

from ckgconv.checks import require


def with_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its groups in place of the groups."""
    hints = get_type_hints(command, include_extras=True)
    groups = {name: kind for name, kind in hints.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        own = _of_group(groups[name]) if name in groups else [parameter.replace(annotation=hints[name])]
        parameters += [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
    names = [each.name for each in parameters]
    repeated = sorted({name for name in names if names.count(name) > 1})
    require(not repeated, f"Two groups of options have a field {', '.join(repeated)}: give each a name of its own.")

    def expanded(**values: Any) -> None:
        made = {
            name: kind(**{field.name: values.pop(field.name) for field in fields(kind)})
            for name, kind in groups.items()
        }
        command(**values, **made)

    expanded.__doc__, expanded.__name__ = command.__doc__, command.__name__
    expanded.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    expanded.__annotations__ = {each.name: each.annotation for each in parameters}
    return expanded


def _of_group(group: type) -> list[inspect.Parameter]:
    """The fields of a group as parameters; a field that must be given has no default."""
    hints = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if field.default is MISSING else field.default,
            annotation=hints[field.name],
        )
        for field in fields(group)
    ]
