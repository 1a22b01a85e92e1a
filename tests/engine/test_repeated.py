"""Mean and standard deviation over runs."""

import math

import pytest

from ckgconv.engine.repeated import mean_and_deviation


def test_mean_and_sample_deviation():
    found = mean_and_deviation([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.sd == pytest.approx(math.sqrt(7 / 3))
    assert str(found) == "2.3333 ± 1.5275"


def test_a_run_without_a_value_leaves_both_undefined():
    found = mean_and_deviation([1.0, None])
    assert math.isnan(found.mean)
    assert math.isnan(found.sd)
