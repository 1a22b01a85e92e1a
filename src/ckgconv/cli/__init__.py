"""The command line: parse, call, print. Errors of the user end with a sentence and exit code 2."""

import re
import sys

import typer

from ckgconv.checks import InputError
from ckgconv.cli import processes
from ckgconv.cli.bench import bench_command
from ckgconv.cli.campaign import campaign_command
from ckgconv.cli.compare import compare_command
from ckgconv.cli.data import data_commands
from ckgconv.cli.evaluate import evaluate_command
from ckgconv.cli.explain import explain_command
from ckgconv.cli.export import export_command
from ckgconv.cli.info import info
from ckgconv.cli.predict import predict_command
from ckgconv.cli.pretrain import pretrain_command
from ckgconv.cli.report import report_command
from ckgconv.cli.search import search_command
from ckgconv.cli.serve import serve_command
from ckgconv.cli.study import study_command
from ckgconv.cli.train import train_command
from ckgconv.files import explaining_file_errors
from ckgconv.pairs.memory import explaining_lack_of_memory

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose help cuts long names of options
    help="Continuous kernel graph convolution: train, evaluate and use graph networks.",
)
app.command("train")(train_command)
app.command("pretrain")(pretrain_command)
app.command("evaluate")(evaluate_command)
app.command("predict")(predict_command)
app.command("explain")(explain_command)
app.command("report")(report_command)
app.command("serve")(serve_command)
app.command("export")(export_command)
app.command("compare")(compare_command)
app.command("info")(info)
app.add_typer(data_commands, name="data")
app.command("bench")(bench_command)
app.command("study")(study_command)
app.command("search")(search_command)
app.command("campaign")(campaign_command)

# The usual exit code after Ctrl-C.
INTERRUPTED = 130
# An option of one letter, not a negative number.
SHORT = re.compile(r"-[A-Za-z]")


def main() -> None:
    """Entry point of `ckgconv`."""
    try:
        with processes.ending_together(), explaining_lack_of_memory("this command"), explaining_file_errors():
            app(args=repeat_options(sys.argv[1:]))
    except InputError as error:
        processes.tell(error)
        sys.exit(2)
    except KeyboardInterrupt:  # before the command began
        _tell_of_interruption()
        sys.exit(INTERRUPTED)
    except SystemExit as stop:
        if stop.code == INTERRUPTED:
            _tell_of_interruption()
        raise


def _tell_of_interruption() -> None:
    print(f"Interrupted: {processes.GOES_ON}", file=sys.stderr)


def repeat_options(arguments: list[str]) -> list[str]:
    """`--seed 0 1 2` as `--seed 0 --seed 1 --seed 2`, which Typer reads; of options that may be repeated."""
    several = _repeatable(arguments)
    result: list[str] = []
    option = None
    values = 0
    for argument in arguments:
        if argument.startswith("--") or SHORT.fullmatch(argument):
            option, values = (argument, 0) if argument in several else (None, 0)
        elif option is not None:
            values += 1
            if values > 1:
                result.append(option)
        result.append(argument)
    return result


def _repeatable(arguments: list[str]) -> set[str]:
    """Names of the options of the command that may be given several times."""
    command = typer.main.get_command(app)
    for argument in arguments:
        commands = getattr(command, "commands", {})
        if argument not in commands:
            break
        command = commands[argument]
    return {name for each in command.params if getattr(each, "multiple", False) for name in each.opts}


__all__ = ["app", "main", "repeat_options"]
