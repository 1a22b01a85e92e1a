"""Covers `ckgconv.cli.curve`."""

import numpy as np
import pytest
from records import write_run

from ckgconv.cli.curve import curve, draw_curve
from ckgconv.engine.record import load_record


@pytest.mark.parametrize("epochs", [1, 2, 3, 40])
def test_epochs_are_whole_numbers(tmp_path, epochs):
    record = load_record(write_run(tmp_path / "run", 0, 0.1, epochs=epochs))
    axes = curve(record).axes[0]
    low, high = axes.get_xlim()
    shown = [tick for tick in axes.get_xticks() if low <= tick <= high]
    assert shown
    assert np.array_equal(shown, np.round(shown))
    marked = [line.get_marker() == "o" for line in axes.get_lines()[:2]]
    assert marked == [epochs < 3] * 2


def test_the_curve_is_written(tmp_path):
    draw_curve(load_record(write_run(tmp_path / "run", 0, None)), tmp_path / "curve.png")
    assert (tmp_path / "curve.png").read_bytes().startswith(b"\x89PNG")
