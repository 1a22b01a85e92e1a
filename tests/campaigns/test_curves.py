"""`benchmarks/curves.py`: what kept validation curves say."""

import json
from pathlib import Path

import pytest
from records import write_run

from ckgconv import recipe
from ckgconv.checks import InputError
from ckgconv.recipes import with_value


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    import curves

    return curves


def keep(folder: Path, seed: int, vals: list[float], length: int = 6, **more) -> None:
    """A run with the given validations, of `length` epochs in all."""
    path = write_run(folder, seed, 0.5, with_value(recipe("zinc"), f"training.epochs={length}"), len(vals), **more)
    record = json.loads((path / "record.json").read_text())
    for epoch, val in zip(record["epochs"], vals, strict=True):
        epoch["val"] = val
    (path / "record.json").write_text(json.dumps(record))


def test_a_run_is_described_by_its_validations(script, tmp_path):
    keep(tmp_path / "zinc-seed3", 3, [0.9, 0.2, 0.6, 0.5, 0.4, 0.3], last={"epochs": 1, "val": 0.3})
    (curve,) = script.curves_in(tmp_path)
    assert (curve.row, curve.length) == ("zinc", 6)
    found = curve.describe(2)
    assert (found["best"], found["epoch"]) == (0.2, 2)
    assert found["around"] == pytest.approx(0.55)
    assert (found["smoothed"], found["at"]) == (pytest.approx(0.35), 6)
    assert found["late"] == pytest.approx(0.35)
    assert (found["last"], found["averaged"]) == (0.3, None)


def test_a_stopped_run_is_forecast_from_those_that_ended(script, tmp_path):
    for seed, end in enumerate((0.4, 0.5)):
        keep(tmp_path / f"row-seed{seed}", seed, [0.8, 0.8, 0.8, 0.8, end, end])
    keep(tmp_path / "shorter-seed0", 0, [0.8, 0.1], length=2)  # of another length
    keep(tmp_path / "other-seed0", 0, [0.4, 0.4, 0.4])
    (found,) = script.forecasts(script.curves_in(tmp_path), 2)
    assert (found["run"], found["now"], found["from"]) == ("other", 0.4, 2)
    assert found["forecast"] == pytest.approx(0.4 * (0.5 + 0.625) / 2)


def test_rows_are_compared_seed_by_seed(script, tmp_path):
    for seed, base in enumerate((0.5, 0.7)):
        keep(tmp_path / f"first-seed{seed}", seed, [base] * 6)
        keep(tmp_path / f"second-seed{seed}", seed, [base - 0.1 - 0.02 * seed] * 6)
        keep(tmp_path / f"third-seed{seed}", seed, [base + 0.04 * seed] * 6)
    keep(tmp_path / "alone-seed0", 0, [0.1] * 6)  # one seed in common
    found = script.differences(script.curves_in(tmp_path), 3, "first")
    late = {line["row"]: line for line in found if line["criterion"] == "late"}
    assert list(late) == ["second", "third"]
    assert late["second"]["by seed"] == pytest.approx([-0.1, -0.12])
    # Variances 0.0002 and 0.0008 of one degree of freedom each.
    assert late["third"]["±"] == pytest.approx((0.0005 / 2) ** 0.5)
    assert late["third"]["degrees of freedom"] == 2
    with pytest.raises(InputError, match="no run that has ended"):
        script.differences(script.curves_in(tmp_path), 3, "fourth")


def test_the_command_prints_a_line_for_each_run(script, tmp_path, monkeypatch, capsys):
    keep(tmp_path / "row-seed0", 0, [0.5, 0.4])
    monkeypatch.setattr("sys.argv", ["curves.py", str(tmp_path), "--width", "2"])
    script.main()
    assert json.loads(capsys.readouterr().out)["late"] == 0.45
    monkeypatch.setattr("sys.argv", ["curves.py", str(tmp_path / "none")])
    with pytest.raises(InputError, match="give folders of runs"):
        script.main()
