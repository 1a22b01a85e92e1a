"""Whether two groups of runs can be told apart: Welch's two-sided t-test, at the level that the paper names."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from ckgconv.studies.significance import LEVEL
from ckgconv.studies.t_test import sample, t_test


@dataclass(frozen=True)
class Values:
    """A metric of several runs, and the digests of their data as far as these are known."""

    label: str
    values: Sequence[float]
    digests: AbstractSet[str] = frozenset()


@dataclass(frozen=True)
class Verdict:
    """Whether two groups differ; p is None where no test applies, and `why` says why."""

    first: str
    second: str
    p: float | None
    why: str = ""

    @property
    def told_apart(self) -> bool:
        return self.p is not None and self.p < LEVEL

    def __str__(self) -> str:
        if self.p is None:
            return f"no test: {self.why}"
        return f"told apart, p = {self.p:.2g}" if self.told_apart else f"not told apart, p = {self.p:.2g}"


def welch(one: Values, other: Values) -> Verdict:
    """The test between two groups, where it applies."""
    names = one.label, other.label
    if min(len(one.values), len(other.values)) < 2:
        return Verdict(*names, None, "it needs 2 finished runs of each")
    if one.digests and other.digests and one.digests != other.digests:
        return Verdict(*names, None, "they were not tested on the same data")
    samples = sample(one.values), sample(other.values)
    if not any(each.deviation > 0 for each in samples):
        return Verdict(*names, None, "no run differs from the others of its group")
    # Two-sided, so that it does not matter whether higher is better.
    return Verdict(*names, t_test(*samples, higher_is_better=True, equal_variance=False).two_sided)
