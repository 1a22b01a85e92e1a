"""Split-conformal intervals."""

import math

import numpy as np
import pytest

from ckgconv import InputError
from ckgconv.uncertainty.intervals import Scores, bounds, check_level, coverage, fitted_scores


def test_the_quantile_is_the_score_of_rank_n_plus_one():
    scores = Scores(np.arange(1.0, 10.0))  # n = 9
    assert scores.quantile(0.9) == 9.0  # ⌈10 · 0.9⌉ = 9
    assert scores.quantile(0.85) == 9.0
    assert scores.quantile(0.8) == 8.0
    assert math.isnan(scores.quantile(0.91))
    assert scores.largest_level == 0.9
    assert math.isnan(Scores(np.zeros(0)).quantile(0.5))


@pytest.mark.parametrize("members", [False, True])
def test_exchangeable_rows_are_covered_as_often_as_promised(members):
    """Whatever the errors: here they grow with a deviation that the members show."""
    generator = np.random.default_rng(0)
    shares, widths = [], []
    for _ in range(200):
        spread = generator.uniform(0.1, 2.0, (60, 1))
        target = generator.normal(size=(60, 1)) * spread
        predicted, deviation = np.zeros((60, 1)), spread if members else None
        fitted = fitted_scores(predicted[:30], target[:30], None if deviation is None else deviation[:30])
        low, high = bounds(fitted, 0.8, predicted[30:], None if deviation is None else deviation[30:])
        (found,) = coverage(0.8, low, high, target[30:])
        shares.append(found.share)
        widths.append(float((high - low).std()))
    assert 0.79 <= np.mean(shares) <= 0.85
    assert (np.mean(widths) > 0.1) == members  # only members make wide and narrow intervals


def test_unknown_targets_do_not_count():
    target = np.array([[1.0, np.nan], [2.0, np.nan], [np.nan, np.nan]])
    first, second = fitted_scores(np.zeros((3, 2)), target, np.zeros((3, 2)))
    assert len(first.ascending) == 2
    assert len(second.ascending) == 0
    low, high = bounds([first, second], 0.5, np.zeros((1, 2)), np.zeros((1, 2)))
    assert high[0, 0] == pytest.approx(2.0)  # members that agree: ⌈3 · 0.5⌉ = 2 of the residuals 1 and 2
    assert np.isnan(low[0, 1])
    known, unknown = coverage(0.5, low, high, np.array([[1.5, 1.0]]))
    assert (known.share, known.rows) == (1.0, 1)
    assert math.isnan(unknown.share)


@pytest.mark.parametrize("level", [0.0, 1.0, -1, 90, math.nan])
def test_levels_are_between_zero_and_one(level):
    with pytest.raises(InputError, match=r"give a number between 0 and 1, such as 0\.9"):
        check_level(level)
