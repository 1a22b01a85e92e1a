"""Figures parse as SVG, whatever their labels say."""

from xml.etree import ElementTree

import numpy as np
from matplotlib.figure import Figure
from records import write_run

from ckgconv.engine.record import load_record
from ckgconv.report import figures

DRAWN = {
    "histogram": lambda: figures.histograms({"train": np.arange(5.0), "test": np.ones(3)}, "$\\frac{$ <b>"),
    "parity": lambda: figures.parity({"test": (np.arange(4.0), np.ones(4))}, "$x^"),
    "many points": lambda: figures.parity({"test": (np.arange(1600.0), np.ones(1600))}, "y"),
    "roc": lambda: figures.roc_and_precision(np.array([0.0, 1, 1, 0]), np.array([0.1, 0.9, 0.4, 0.6])),
    "confusion": lambda: figures.confusion(np.eye(3, dtype=int), ["a", "<b>", "c" * 40]),
    "coverage": lambda: figures.coverage_curve([0.5, 0.9], [0.4, 0.95]),
    "reliability": lambda: figures.reliability({"as trained": ([0.1, 0.9], [0.2, 0.8])}),
}


def test_every_figure_parses():
    for name, draw in DRAWN.items():
        assert ElementTree.fromstring(draw()).tag.endswith("svg"), name


def test_epochs_of_a_short_run_are_whole_numbers(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "Figure", lambda **options: drawn.append(Figure(**options)) or drawn[-1])
    figures.curves(load_record(write_run(tmp_path / "run", 0, 0.1, epochs=1)))
    for axes in drawn[0].axes:
        low, high = axes.get_xlim()
        assert [tick for tick in axes.get_xticks() if low <= tick <= high] == [1]
