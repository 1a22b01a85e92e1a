"""A row of the page of a campaign: the runs of one recipe with its changes, what counts of them and what is compared.

While a campaign is not final no test metric of a run is looked at, whatever its record holds.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ckgconv.campaigns.plan import Campaign
from ckgconv.campaigns.progress import Progress, differences
from ckgconv.engine.record import Best, Ending, Record
from ckgconv.recipe import Recipe
from ckgconv.studies.verdict import Values


@dataclass(frozen=True)
class Row:
    """The runs of one recipe with its changes and precision."""

    label: str
    runs: tuple[Progress, ...]
    final: bool

    @property
    def ended(self) -> list[Record]:
        """Records of the runs that count: all epochs trained, and tested where the campaign is final."""
        return [each.record for each in self.runs if each.record is not None and counts_in(each, self.final)]

    @property
    def vals(self) -> list[float]:
        return [record.best.val for record in self.ended if record.best is not None]

    @property
    def tests(self) -> list[float]:
        """Empty before the campaign is final, whatever a record holds."""
        return [record.test for record in self.ended if record.test is not None] if self.final else []

    @property
    def further(self) -> tuple[str, ...]:
        """Names of the metrics that the recipe asks for besides its own."""
        return self.recipe.training.metrics

    def further_values(self, ending: str, name: str) -> list[float]:
        """A further metric of what the runs end with, as far as their records have it: on the split of the page."""
        kept, split = [getattr(record, ending) for record in self.ended], "test" if self.final else "val"
        metrics = [(each.metrics or {}).get(split, {}) for each in kept if each is not None]
        return [found[name] for found in metrics if math.isfinite(found.get(name, math.nan))]

    def ending(self, name: str, split: str) -> list[float]:
        """A metric of what the runs end with, "last" or "averaged", as far as their records have it."""
        if split == "test" and not self.final:
            return []
        found = [defined(getattr(record, name), split) for record in self.ended]
        return [value for value in found if value is not None]

    @property
    def judged(self) -> Values:
        """What t-tests compare."""
        digests = {record.data.digest for record in self.ended if record.data is not None}
        return Values(self.label, self.values, digests)

    @property
    def values(self) -> list[float]:
        """One of each run, by which rows are compared."""
        if self.final:
            return self.tests
        return self.further_values("last", self.further[0]) if self.further else self.vals

    @property
    def judged_metric(self) -> str:
        """The name of what is compared."""
        return self.further[0] if self.further and not self.final else self.problem[1]

    @property
    def recipe(self) -> Recipe:
        return self.runs[0].planned.resolved()

    @property
    def problem(self) -> tuple[str, str]:
        """Data set and metric: rows are compared where they have both in common."""
        return self.recipe.data.name, self.recipe.training.metric

    @property
    def paper(self) -> tuple[float, ...]:
        """The printed test metric of the recipe, changed or not."""
        return self.recipe.paper_test

    @property
    def changed(self) -> bool:
        return bool(self.runs[0].planned.changes)


def counts_in(run: Progress, final: bool) -> bool:
    """Whether the metrics of a run enter its row: all of its epochs are trained, and what is shown is a number."""
    if run.record is None or run.record.best is None or not run.record.ended:
        return False
    best = run.record.best
    return math.isfinite(best.val) and (not final or (best.test is not None and math.isfinite(best.test)))


def rows_of(campaign: Campaign, found: Sequence[Progress]) -> list[Row]:
    """In the order of the file, those of one data set together; labels name what not all runs share."""
    groups: dict[str, list[Progress]] = {}
    for each, apart in zip(found, differences(found), strict=True):
        groups.setdefault(" ".join([each.planned.recipe, *apart]), []).append(each)
    rows = [Row(label, tuple(runs), campaign.final) for label, runs in groups.items()]
    order = list(dict.fromkeys(row.problem for row in rows))
    return sorted(rows, key=lambda row: order.index(row.problem))


def defined(metrics: Best | Ending | None, split: str) -> float | None:
    """A metric; None where it is unknown or no number."""
    value: float | None = None if metrics is None else getattr(metrics, split)
    return value if value is not None and math.isfinite(value) else None
