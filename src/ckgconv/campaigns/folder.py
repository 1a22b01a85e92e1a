"""The folder of a campaign, which holds all of its state and no absolute path: it can be moved, and training goes on.

    campaign.json          the file, as it was last read
    history.json           when it was created, when runs were added, when it was declared final
    runs/NAME/             the folder of each run, as `ckgconv train` writes it
    logs/NAME.txt          what the process of that run printed
    failures.json          the sentence of each run that failed
    lock                   the process at work (`lock`)
    README.md, figure.png, table.json    the page (`page`)

Runs are never replaced: once one is trained, a file may only add runs, or be declared final, for good.
"""

import json
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import with_config

from ckgconv.campaigns.plan import FILE, Campaign, PlannedRun, campaign_from_json
from ckgconv.checks import InputError, require
from ckgconv.engine.record import Record, read_record
from ckgconv.files import parse_json, read_text, write_text
from ckgconv.recipe.values import SETTINGS, convert

HISTORY = "history.json"
CREATED, ADDED, FINAL = "created", "runs added", "declared final"


@with_config(SETTINGS)
@dataclass(frozen=True)
class Event:
    """A line of the history."""

    time: str  # UTC
    event: str
    runs: tuple[str, ...] = ()  # names of the runs that it brought


@dataclass(frozen=True)
class CampaignFolder:
    """Paths and files of a campaign."""

    path: Path

    def campaign(self) -> Campaign:
        """The campaign, as it was last read; final only where its history says since when."""
        file = self.path / FILE
        campaign = campaign_from_json(read_text(file, "give the folder of a campaign."), str(file))
        return replace(campaign, final=campaign.final and self.declared_final() is not None)

    def declared_final(self) -> str | None:
        """When it was declared final; None: it is not."""
        return next((event.time for event in self.history() if event.event == FINAL), None)

    def run(self, planned: PlannedRun) -> Path:
        return self.path / "runs" / planned.name

    def log(self, planned: PlannedRun) -> Path:
        return self.path / "logs" / f"{planned.name}.txt"

    def record(self, planned: PlannedRun) -> Record | None:
        """The record of a run; None before it has begun."""
        return read_record(self.run(planned))

    def history(self) -> list[Event]:
        """Oldest first; empty before the campaign is created."""
        file = self.path / HISTORY
        if not file.exists():
            return []
        return [convert(each, Event, str(file)) for each in _read_json(file, list)]

    def failures(self) -> dict[str, str]:
        """Name → sentence of the runs that failed."""
        file = self.path / "failures.json"
        return {str(name): str(sentence) for name, sentence in _read_json(file, dict).items()} if file.exists() else {}

    def write_failures(self, failures: dict[str, str]) -> None:
        write_text(self.path / "failures.json", json.dumps(failures, indent=1, ensure_ascii=False) + "\n")

    def adopt(self, campaign: Campaign) -> None:
        """Take over a file that was read: as a new campaign, or with what it adds to this one."""
        history = self.history()
        if not history:
            self._require_new()
            names = tuple(planned.name for planned in campaign.runs())
            events = [_now(CREATED, names), *([_now(FINAL)] if campaign.final else [])]
        else:
            events = self._changes(campaign, history)
        # The history goes first: a run that it does not name is never trained.
        if events:
            text = json.dumps([asdict(event) for event in [*history, *events]], indent=1)
            write_text(self.path / HISTORY, text + "\n")
        write_text(self.path / FILE, campaign.to_json())

    def _require_new(self) -> None:
        others = sorted(each.name for each in self.path.iterdir() if each.name not in ("lock", FILE))
        require(
            not others,
            f"{self.path} has no history.json, but {', '.join(others[:3])}: it is no campaign's, choose another --out.",
        )

    def _changes(self, campaign: Campaign, history: list[Event]) -> list[Event]:
        """What the file changes; refused where it takes back what was trained or declared."""
        known = [name for event in history for name in event.runs]
        names = [planned.name for planned in campaign.runs()]
        removed = [name for name in known if name not in names]
        trained = [name for name in known if (self.path / "runs" / name).exists()]
        require(
            not (removed and trained),
            f"The file no longer has {', '.join(removed[:3])}, but runs of {self.path} have been trained: only add "
            f"runs to its file, or start another campaign with --out.",
        )
        declared = self.declared_final()
        require(
            campaign.final or declared is None,
            f"{self.path} was declared final at {declared}, and the file says that it is not: a final campaign stays "
            f"final. Go on with 'ckgconv campaign {self.path}', or start another one with --out.",
        )
        added = tuple(name for name in names if name not in known)
        events = [_now(ADDED, added)] if added else []
        return events + ([_now(FINAL)] if campaign.final and declared is None else [])


def _now(event: str, runs: tuple[str, ...] = ()) -> Event:
    return Event(datetime.now(UTC).isoformat(timespec="seconds"), event, runs)


def _read_json(file: Path, kind: type) -> Any:
    text = read_text(file, "restore it, or start another campaign with --out.")
    try:
        values = parse_json(text)
    except InputError as error:
        raise InputError(f"{file} cannot be read ({error}): restore it, or start another campaign.") from error
    require(isinstance(values, kind), f"{file} is damaged: restore it, or start another campaign with --out.")
    return values
