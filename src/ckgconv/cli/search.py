"""`ckgconv search my.csv --target y --trials 30`: choose settings by trials; `ckgconv search status FOLDER`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ckgconv.checks import check_choice, require
from ckgconv.cli import terminal
from ckgconv.cli.curve import draw_curve
from ckgconv.cli.initial_options import FeatureOptions, InitialOptions
from ckgconv.cli.option_groups import with_groups
from ckgconv.cli.table_options import TableOptions
from ckgconv.cli.task_options import TaskOptions
from ckgconv.cli.train import resolve
from ckgconv.cli.train_report import summary
from ckgconv.cli.training_options import TrainingOptions
from ckgconv.engine.lock import holder_of, locked
from ckgconv.engine.run import check_seed
from ckgconv.engine.setup import process_count
from ckgconv.files import valid_json
from ckgconv.recipes import with_value
from ckgconv.recipes.molecules import fitting
from ckgconv.searching.page import write_page
from ckgconv.searching.search import SearchSettings, ended, run_search
from ckgconv.searching.space import read_space
from ckgconv.searching.study import RUN, SearchFolder, open_search
from ckgconv.searching.trial import TrialSettings

SEARCHES = Path("runs/searches")
STATUS = "status"


@with_groups
def search_command(
    what: Annotated[
        str, typer.Argument(metavar="RECIPE", help=f"A table, a recipe.json or a recipe; or '{STATUS}', and a FOLDER.")
    ],
    table: TableOptions,
    features: FeatureOptions,
    initial: InitialOptions,
    training: TrainingOptions,
    task: TaskOptions,
    folder: Annotated[Path | None, typer.Argument(metavar="[FOLDER]", help=f"Of '{STATUS}': a search's.")] = None,
    trials: Annotated[int, typer.Option(help="Trials in all; those of earlier calls count.")] = 30,
    space: Annotated[Path | None, typer.Option(help="A JSON file of what to vary, in place of the default.")] = None,
    at_once: Annotated[int, typer.Option(min=1, help="Trials at a time, each in a process of its own.")] = 1,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="Change a value of the recipe. Repeatable.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of every trial and of the draws.")] = 0,
    out: Annotated[Path | None, typer.Option(help=f"Folder of the search, by default {SEARCHES}/NAME.")] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    precision: Annotated[str, typer.Option(help="32, tf32, bf16 or 64.")] = "32",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Choose settings by trials, then train and test the best once; the same command goes on after any end."""
    require(process_count() == 1, "A search starts its own processes: start it once, without torchrun.")
    check_choice("device", device, ("auto", "cpu", "cuda"))
    if what == STATUS:
        require(folder is not None, f"'{STATUS}' was given without a folder: name that of a search.")
        assert folder is not None
        _show(open_search(folder), as_json)
        return
    require(folder is None, f"{folder} was given after {what}: name the folder of a search with --out.")
    check_seed(seed)
    check_choice("precision", precision, ("32", "tf32", "bf16", "64"))
    recipe = task.applied(training.applied(initial.applied(resolve(what, table, features))))
    for setting in settings or []:
        recipe = with_value(recipe, setting)
    recipe = recipe if initial.init else fitting(recipe)
    given = [*training.given, *initial.given, *task.given, *(each.partition("=")[0].strip() for each in settings or [])]
    chosen_space = read_space(space, recipe, given)
    search = SearchFolder(out or SEARCHES / recipe.name, recipe, chosen_space, seed, precision)
    console = terminal.console(soft_wrap=True, stderr=as_json)
    for sentence in (*table.said(recipe), f"varied: {', '.join(chosen_space.entries)}"):
        console.print(sentence, highlight=False)
    with locked(search.path):
        chosen = SearchSettings(trials, at_once, TrialSettings(device, data_dir))
        run = run_search(search, chosen, lambda line: console.print(line, highlight=False))
        draw_curve(run.record, search.path / RUN / "curve.png")
        write_page(search, search.study())
    if as_json:
        print(valid_json({**_values(search), "run": summary(run)}))
        return
    best = run.record.best
    if best is not None and best.test is not None:
        console.print(f"best recipe: validation {run.record.metric} {best.val:.4f}, test {best.test:.4f}, tested once")
    console.print(f"{search.path}: README.md, search.png, best.json, {RUN}/")


def _values(search: SearchFolder) -> dict[str, Any]:
    study = search.study()
    found = ended(study)
    best = study.best_trial if any(each.state.name == "COMPLETE" for each in found) else None
    return {
        "search": str(search.path),
        "metric": search.recipe.training.metric,
        "trials": {name: sum(each.state.name == name for each in found) for name in ("COMPLETE", "PRUNED", "FAIL")},
        "best": None if best is None else {"trial": best.number, "val": best.value, "settings": best.params},
        "tested": search.tested,
    }


def _show(search: SearchFolder, as_json: bool) -> None:
    """How far a search is."""
    found = _values(search)
    if as_json:
        print(valid_json(found))
        return
    console, counts, best = terminal.console(soft_wrap=True), found["trials"], found["best"]
    console.print(f"{counts['COMPLETE']} trials trained to the end, {counts['PRUNED']} pruned, {counts['FAIL']} failed")
    if best is not None:
        console.print(
            f"best: trial {best['trial']}, validation {found['metric']} {best['val']:.4f}, {best['settings']}"
        )
    holder = holder_of(search.path)
    state = "its best recipe was tested" if found["tested"] else "not ended: the same command goes on"
    console.print(state if holder is None else f"at work: {holder}")
