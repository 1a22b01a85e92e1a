"""The command line: parse, call, print. Mistakes of the user end with a sentence and exit code 2."""

import sys

import typer

from ckgconv.checks import InputError
from ckgconv.cli.bench import bench_command
from ckgconv.cli.data import data_commands
from ckgconv.cli.evaluate import evaluate_command
from ckgconv.cli.info import info
from ckgconv.cli.predict import predict_command
from ckgconv.cli.study import study_command
from ckgconv.cli.train import train_command

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Continuous kernel graph convolution: train, evaluate and use graph networks.",
)
app.command("train")(train_command)
app.command("evaluate")(evaluate_command)
app.command("predict")(predict_command)
app.command("info")(info)
app.add_typer(data_commands, name="data")
app.command("bench")(bench_command)
app.command("study")(study_command)

# What a shell expects of a program that Ctrl-C ended.
INTERRUPTED = 130
# Options after which several values may stand: --seed 0 1 2 3.
SEVERAL = {"--seed", "--target", "--set", "--seeds", "--runs"}
# The same, where --against of a command takes several: that of `bench` takes one.
SEVERAL_OF_STUDY = {"--against"}


def main() -> None:
    """Entry point of `ckgconv`."""
    try:
        app(args=spread(sys.argv[1:]))
    except InputError as mistake:
        print(f"Error: {mistake}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            print("Interrupted: a training continues with --resume.", file=sys.stderr)
        raise


def spread(arguments: list[str]) -> list[str]:
    """`--seed 0 1 2` as `--seed 0 --seed 1 --seed 2`."""
    several = SEVERAL | SEVERAL_OF_STUDY if arguments[:1] == ["study"] else SEVERAL
    result: list[str] = []
    option = None
    values = 0
    for argument in arguments:
        if argument.startswith("--"):
            option, values = (argument, 0) if argument in several else (None, 0)
        elif option is not None:
            values += 1
            if values > 1:
                result.append(option)
        result.append(argument)
    return result


__all__ = ["app", "main", "spread"]
