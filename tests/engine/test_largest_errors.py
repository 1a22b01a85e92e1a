"""`benchmarks/largest_errors.py`: a metric without its largest errors, and the rings of their molecules."""

from pathlib import Path

import pytest

from ckgconv import recipe, train
from ckgconv.data import zinc
from ckgconv.recipes import with_value


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import largest_errors

    return largest_errors


def test_what_is_left_without_the_largest_errors(script, tmp_path):
    chosen = recipe("zinc-demo")
    for value in ("data.limit=6", "model.width=8", "model.blocks=1", "training.epochs=1", "training.warmup_epochs=0"):
        chosen = with_value(chosen, value)
    run = train(chosen, folder=tmp_path / "run", device="cpu", test=False)
    found = script.largest_errors(str(tmp_path / "run"), 2, "cpu")
    assert found["mae"] == pytest.approx(run.record.best.val, abs=1e-4)
    largest, second = (each["error"] for each in found["molecules"])
    assert largest >= second
    assert found["without"][0] == pytest.approx((6 * found["mae"] - largest) / 5, abs=0.01)
    assert found["without"][1] == pytest.approx((6 * found["mae"] - largest - second) / 4, abs=0.01)


@pytest.mark.parametrize(
    ("graph", "sizes", "longest"), [(10_249, [4, 8], 8), (10_172, [6, 6, 6], 12), (10_753, [5, 6, 6, 6, 6], 8)]
)
def test_rings_are_a_minimum_basis_and_the_longest_cycle_is_not_in_it(script, graph, sizes, longest):
    assert script.rings(zinc(), graph) == {"rings": sizes, "longest": longest}
