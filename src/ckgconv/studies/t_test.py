"""Two-sample t-tests, from the values of runs or from a printed mean ± s.d. of n runs.

    t = (x̄ - ȳ) / (s √(1/n + 1/m)),   s² = ((n - 1) s_x² + (m - 1) s_y²) / (n + m - 2)

This is Student's test with equal variances, the one the paper names; Welch's, without that assumption, is an option.
The deviations are those of samples, dividing by n - 1.
"""

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from scipy.stats import ttest_ind_from_stats

from ckgconv.checks import require


@dataclass(frozen=True)
class Sample:
    """What a table prints of several runs."""

    mean: float
    deviation: float
    runs: int

    def __str__(self) -> str:
        """The mean with the decimals that three digits of the deviation have."""
        deviation = f"{self.deviation:.3g}"
        decimals = -int(Decimal(deviation).as_tuple().exponent)
        return f"{self.mean:.{max(decimals, 0)}f} ± {deviation}" if self.deviation else f"{self.mean:.5g} ± 0"


@dataclass(frozen=True)
class TTest:
    """t, and the probability of a difference like this between runs of one and the same method."""

    t: float  # positive where the first sample is better
    one_sided: float  # of the first sample being this much better
    two_sided: float


def sample(values: Sequence[float]) -> Sample:
    """Mean and deviation of runs."""
    require(len(values) > 1, f"{len(values)} run was given: a deviation needs at least 2.")
    return Sample(statistics.fmean(values), statistics.stdev(values), len(values))


def t_test(first: Sample, second: Sample, higher_is_better: bool, equal_variance: bool = True) -> TTest:
    """Whether `first` is better than `second` (one-sided), and whether they differ (two-sided)."""
    for each in (first, second):
        require(each.runs > 1, f"A sample of {each.runs} run was given: a t-test needs at least 2 of each kind.")
        require(each.deviation >= 0, f"The deviation {each.deviation} is negative: give the s.d. of the runs.")
    require(
        first.deviation > 0 or second.deviation > 0,
        "Neither sample varies between its runs, so no t-test applies: compare the means as they are.",
    )
    low, high = (second, first) if higher_is_better else (first, second)
    tests = {
        alternative: ttest_ind_from_stats(
            *(high.mean, high.deviation, high.runs),
            *(low.mean, low.deviation, low.runs),
            equal_var=equal_variance,
            alternative=alternative,
        )
        for alternative in ("greater", "two-sided")
    }
    one, two = tests["greater"], tests["two-sided"]
    return TTest(float(one.statistic), float(one.pvalue), float(two.pvalue))
