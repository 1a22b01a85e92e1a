from dataclasses import dataclass
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ckgconv import InputError
from ckgconv.cli.option_groups import with_groups


@dataclass(frozen=True)
class Sizes:
    width: Annotated[int, typer.Option("--width", "--hidden", help="Channels.")]
    names: Annotated[list[str] | None, typer.Option("--name")] = None


def command(what: str, sizes: Sizes, loud: Annotated[bool, typer.Option("--loud")] = False) -> None:
    """What it does."""
    print(what, sizes, loud)


def test_fields_of_a_group_are_options_of_the_command():
    app = typer.Typer()
    app.command()(with_groups(command))
    found = CliRunner().invoke(app, ["x", "--hidden", "3", "--name", "a", "--name", "b", "--loud"])
    assert found.output == "x Sizes(width=3, names=['a', 'b']) True\n"
    assert CliRunner().invoke(app, ["x", "--width", "3"]).output == "x Sizes(width=3, names=None) False\n"
    assert CliRunner().invoke(app, ["x"]).exit_code == 2  # a field without a default must be given
    assert "What it does." in CliRunner().invoke(app, ["--help"]).output


def test_two_fields_of_one_name_are_refused():
    @dataclass(frozen=True)
    class Again:
        width: int = 1

    def twice(sizes: Sizes, again: Again) -> None: ...

    twice.__annotations__ = {"sizes": Sizes, "again": Again}
    with pytest.raises(InputError, match="Two groups of options have a field width"):
        with_groups(twice)
