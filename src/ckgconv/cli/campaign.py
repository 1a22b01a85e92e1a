"""`ckgconv campaign FILE`: train the runs of a campaign, and write its page; `ckgconv campaign status FOLDER`."""

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from ckgconv.campaigns.folder import HISTORY, CampaignFolder
from ckgconv.campaigns.page import write_campaign_page
from ckgconv.campaigns.plan import FILE, campaign_file, read_campaign, shipped
from ckgconv.campaigns.progress import Progress, counts, differences, duration, expected, progress_of
from ckgconv.campaigns.queue import QueueSettings, all_failed, train_all
from ckgconv.checks import check_choice, require
from ckgconv.cli import terminal
from ckgconv.cli.study import PIPED_WIDTH
from ckgconv.engine.lock import holder_of, locked
from ckgconv.engine.setup import process_count
from ckgconv.files import valid_json
from ckgconv.studies.report import shown

CAMPAIGNS = Path("runs/campaigns")
STATUS = "status"


def campaign_command(
    what: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN",
            help=f"The file of a campaign, its folder, or one of {', '.join(shipped())}; or '{STATUS}', and a FOLDER.",
        ),
    ],
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help=f"Of '{STATUS}': a campaign's, or its name.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help=f"Its folder, by default {CAMPAIGNS}/NAME.")] = None,
    at_once: Annotated[int, typer.Option(min=1, help="Runs that share the device.")] = 1,
    seconds: Annotated[
        float | None,
        typer.Option(min=0, help="Stop at checkpoints after about this time; by default, when all is done."),
    ] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Train failed runs again.")] = False,
    only: Annotated[
        list[str] | None, typer.Option(help="Train runs of these names alone, such as 'zinc-grit-*'; more than once.")
    ] = None,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    data_dir: Annotated[Path | None, typer.Option(help="Where packed files are, by default $CKGCONV_DATA.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print how far all runs are as JSON.")] = False,
) -> None:
    """Train the runs of a campaign that are left, and write its page; the same command goes on after any end."""
    require(process_count() == 1, "A campaign starts its own processes: start it once, without torchrun.")
    check_choice("device", device, ("auto", "cpu", "cuda"))
    console = terminal.console(soft_wrap=True, stderr=as_json, width=None if sys.stdout.isatty() else PIPED_WIDTH)
    if what == STATUS:
        require(folder is not None, f"'{STATUS}' was given without a folder: name that of a campaign.")
        assert folder is not None
        _show(CampaignFolder(_started(folder)), console, as_json)
        return
    require(folder is None, f"{folder} was given after {what}: name the campaign's folder with --out.")
    campaign = read_campaign(what)
    place = CampaignFolder(out or _folder_of(what) or CAMPAIGNS / campaign.name)
    settings = QueueSettings(at_once, seconds, device, data_dir, retry, tuple(only or ()))
    with locked(place.path) as lock:
        place.adopt(campaign)
        found = train_all(place, settings, lock, lambda line: console.print(line, highlight=False))
        write_campaign_page(place)
    _show(place, console, as_json)
    console.print(f"{place.path}: README.md, figure.png, table.json")
    if all_failed(found):
        raise typer.Exit(1)


def _folder_of(what: str) -> Path | None:
    """The folder of a campaign that a user named, or whose own file they named; None for any other file or name."""
    file = campaign_file(what)
    own = file == Path(what) / FILE or (file.name == FILE and (file.parent / HISTORY).exists())
    return file.parent if own else None


def _started(what: Path) -> Path:
    """The folder of a campaign that has begun, which a user names by its path or, in `CAMPAIGNS`, by its name."""
    found = next((each for each in (what, CAMPAIGNS / what) if (each / FILE).exists()), None)
    require(found is not None, f"{what} is no campaign that has begun: give its folder, such as {CAMPAIGNS / 'NAME'}.")
    assert found is not None
    return found


def _show(folder: CampaignFolder, console: Console, as_json: bool) -> None:
    """How far all runs are, and how long the rest may take."""
    found, campaign, holder = progress_of(folder), folder.campaign(), holder_of(folder.path)
    if as_json:
        runs = [_values(each) for each in found]
        print(valid_json({"name": campaign.name, "final": campaign.final, "left": expected(found), "runs": runs}))
        return
    title = f"{campaign.name}, {'final' if campaign.final else 'not final: no run is tested'}"
    apart = differences(found)
    what = ("changes",) if any(apart) else ()
    table = Table("run", *what, "state", "epochs", "best val", "s/epoch", "left", title=title)
    for each, changes in zip(found, apart, strict=True):
        values = _values(each)
        left = "–" if not each.left_seconds else duration(each.left_seconds)
        run = (each.planned.name, *([" ".join(changes) or "–"] if what else []), each.state)
        table.add_row(*run, f"{each.done} of {each.epochs}", shown(values["val"]), shown(values["epoch_s"]), left)
    console.print(table)
    for each in found:
        if each.failure is not None:
            console.print(f"{each.planned.name} failed: {each.failure}", highlight=False)
    console.print(f"{counts(found)}. Left: {expected(found)}." + (f" At work: {holder}." if holder else ""))


def _values(each: Progress) -> dict[str, Any]:
    """A run, as --json prints it."""
    best = None if each.record is None else each.record.best
    return {
        "name": each.planned.name,
        **asdict(each.planned),
        "state": each.state,
        "epochs": each.done,
        "of": each.epochs,
        "val": None if best is None else best.val,
        "epoch_s": each.epoch_seconds,
        "left_s": each.left_seconds,
        "failure": each.failure,
    }
