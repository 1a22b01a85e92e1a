"""What of a campaign is done, running and left, and how long that may take.

A run that has not begun is expected to take what the epochs of the same recipe and changes have taken so far; where
none of these was trained, those of the same recipe with other changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from ckgconv.campaigns.folder import CampaignFolder
from ckgconv.campaigns.plan import Campaign, PlannedRun
from ckgconv.engine.lock import holder_of
from ckgconv.engine.record import Record

DONE, FAILED, RUNNING, STOPPED, UNTESTED, WAITING = "done", "failed", "running", "stopped", "to be tested", "waiting"


@dataclass(frozen=True)
class Progress:
    """A run of a campaign so far."""

    planned: PlannedRun
    state: str
    record: Record | None  # None before its first checkpoint
    epochs: int  # in all
    epoch_seconds: float | None  # with validation and checkpoints; None: unknown
    failure: str | None = None

    @property
    def done(self) -> int:
        """Epochs that are trained."""
        return 0 if self.record is None else len(self.record.epochs)

    @property
    def to_train(self) -> bool:
        """Whether a worker has anything left to do."""
        return self.state in (STOPPED, UNTESTED, WAITING)

    @property
    def left_seconds(self) -> float | None:
        """Expected time; None where nothing is known about such runs."""
        if self.state in (DONE, FAILED, UNTESTED):
            return 0.0
        return None if self.epoch_seconds is None else (self.epochs - self.done) * self.epoch_seconds


def progress_of(folder: CampaignFolder) -> list[Progress]:
    """Every run of a campaign, in the order of its file."""
    campaign, failures, holder = folder.campaign(), folder.failures(), holder_of(folder.path)
    running = () if holder is None else holder.running
    planned = campaign.runs()
    records = {each.name: folder.record(each) for each in planned}
    speeds: dict[str, list[float]] = {}
    for each in planned:
        record = records[each.name]
        if record is not None and record.epochs:
            for kind in (each.label, _whatever_changes(each)):
                speeds.setdefault(kind, []).append(epoch_time(record))
    return [
        Progress(
            each,
            _state(campaign, records[each.name], each.name in running, each.name in failures),
            records[each.name],
            each.resolved().training.epochs,
            median(found) if (found := speeds.get(each.label) or speeds.get(_whatever_changes(each))) else None,
            failures.get(each.name),
        )
        for each in planned
    ]


def epoch_time(record: Record) -> float:
    """Seconds of one more epoch, with validation and checkpoint.

    The median, since the first epoch of each piece compiles, and a piece may have shared its device.
    """
    seconds = [epoch.seconds for epoch in record.epochs]
    between = max(0.0, record.wall_s - sum(seconds)) / len(seconds)
    return median(seconds) + between


def _whatever_changes(planned: PlannedRun) -> str:
    """What runs have in common whose epochs may take about as long."""
    return f"{planned.recipe} with any changes, {planned.precision}"


def differences(found: Sequence[Progress]) -> list[tuple[str, ...]]:
    """Of each run, its changes and precision as far as not all runs share them."""
    settings = [(*each.planned.changes, each.planned.precision) for each in found]
    shared = set.intersection(*map(set, settings))
    return [tuple(value for value in each if value not in shared) for each in settings]


def _state(campaign: Campaign, record: Record | None, running: bool, failed: bool) -> str:
    if running:
        return RUNNING
    if failed:
        return FAILED
    if record is None or not record.epochs:
        return WAITING
    if not record.ended:
        return STOPPED
    untested = record.test is None and not (record.data is not None and record.data.test == 0)
    return UNTESTED if campaign.final and untested else DONE


def expected(found: Sequence[Progress], at_once: int | None = None) -> str:
    """The time left in words, with as many runs at once as so far."""
    at_once = at_once or max((each.record.at_once or 1 for each in found if each.record is not None), default=1)
    seconds = [each.left_seconds for each in found]
    known = sum(each for each in seconds if each is not None) / at_once
    unknown = sum(each is None for each in seconds)
    parts = [f"about {duration(known)} at {at_once} at once"] if known else []
    parts += [f"{unknown} run{'s' if unknown > 1 else ''} of unknown length"] if unknown else []
    return " and ".join(parts) or "nothing"


def duration(seconds: float) -> str:
    """Seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counts(found: Sequence[Progress]) -> str:
    """How many runs are in each state."""
    order = (DONE, RUNNING, UNTESTED, STOPPED, WAITING, FAILED)
    numbers = {state: sum(each.state == state for each in found) for state in order}
    return ", ".join(f"{number} {state}" for state, number in numbers.items() if number)
