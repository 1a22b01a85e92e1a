"""The command line: parse, call, print. Mistakes of the user end with a sentence and exit code 2."""

import sys

import typer

from ckgconv.checks import InputError
from ckgconv.cli.info import info

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Continuous kernel graph convolution.",
)
app.command()(info)


@app.callback()
def commands() -> None:
    """Continuous kernel graph convolution."""


def main() -> None:
    """Entry point of `ckgconv`."""
    try:
        app()
    except InputError as mistake:
        print(f"Error: {mistake}", file=sys.stderr)
        sys.exit(2)
