"""Grids of training runs: small ones, on the first graphs of ZINC."""

import json
from dataclasses import asdict, replace

import pytest
import torch

from ckgconv import InputError, recipe
from ckgconv.engine.record import Best, Record
from ckgconv.studies import STUDIES, Options, ablations
from ckgconv.studies.grid import Outcome, Variant, digest, shortened


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    def small(name):
        chosen = recipe("zinc")
        model = replace(chosen.model, width=8, blocks=1, steps=3, node_steps=2)
        data = replace(chosen.data, limit=6)
        training = replace(chosen.training, epochs=100, warmup_epochs=50, batch_size=3)
        return replace(chosen, model=model, data=data, training=training)

    monkeypatch.setattr(ablations, "recipe", small)
    monkeypatch.setattr(ablations, "DEPTH_WIDTHS", {0: 12, 1: 10, 2: 8})


@pytest.mark.parametrize("name", ["support", "kernel-depth", "pe", "flexibility", "normalisation", "degree"])
def test_every_grid_runs_and_reports(name, tmp_path):
    options = Options(seeds=(0, 1), epochs=2, device="cpu", keep=tmp_path)
    report = STUDIES[name].run(options)
    assert all(len(row) == len(report.columns) for row in report.rows)
    assert "2 epochs, shortened" in report.columns[2]
    protocol, tested, costs = report.notes[-3:]
    assert "precision 32. Shortened from 100 to 2 epochs" in protocol
    assert "t-test against" in tested
    assert costs.startswith("s/epoch: median")
    best = [row for row in report.rows if row[3] is None]
    assert best
    assert all(0 <= row[3] <= 1 for row in report.rows if row not in best)
    assert all(len(runs) == 2 for runs in report.values.values())
    assert report.seeds == (0, 1)
    assert report.origin.device.startswith("cpu")
    assert report.origin.seconds > 0
    folders = sorted(path.name for path in tmp_path.iterdir())
    assert len(folders) == 2 * len([row for row in report.rows if row[0] != "GRIT"])


def test_concurrent_runs_equal_serial_ones(tmp_path):
    options = Options(seeds=(0, 1), epochs=2, device="cpu", keep=tmp_path / "one")
    threads = torch.get_num_threads()
    # As many as each of two processes has: with others, sums are rounded in another order.
    torch.set_num_threads(max(1, threads // 2))
    alone = STUDIES["normalisation"].run(options)
    torch.set_num_threads(threads)
    together = STUDIES["normalisation"].run(replace(options, keep=tmp_path / "two", workers=2))
    assert [row[:5] for row in alone.rows] == [row[:5] for row in together.rows]
    assert together.columns[5] == "s/epoch, 2 at once"


def test_finished_runs_are_read_again(tmp_path):
    options = Options(seeds=(0,), epochs=2, device="cpu", keep=tmp_path)
    first = STUDIES["degree"].run(options)
    for path in [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "record.json"]:
        path.unlink()
    second = STUDIES["degree"].run(options)
    assert first.rows == second.rows
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"record.json"}
    with pytest.raises(InputError, match="was not trained with precision 64: give the --precision"):
        STUDIES["degree"].run(replace(options, precision="64"))


def test_runs_that_were_not_tested_are_trained_on(tmp_path):
    options = Options(seeds=(0,), epochs=2, device="cpu", keep=tmp_path)
    first = STUDIES["degree"].run(options)
    for path in tmp_path.rglob("record.json"):
        record = json.loads(path.read_text())
        path.write_text(json.dumps(record | {"best": record["best"] | {"test": None}}))
    second = STUDIES["degree"].run(options)
    assert [row[:4] for row in first.rows] == [row[:4] for row in second.rows]


def test_the_published_recipe_is_trained_once_for_all_studies(tmp_path):
    options = Options(seeds=(0,), epochs=2, device="cpu", keep=tmp_path)
    reports = [STUDIES[name].run(options) for name in ("normalisation", "degree", "flexibility")]
    assert len(list(tmp_path.iterdir())) == sum(len(report.values) for report in reports) - 2
    assert reports[2].rows[-1][:3] == ("GRIT", "0.059 ± 0.002", None)
    assert "±" not in reports[0].rows[0][2]
    assert reports[0].notes[-2] == "p: none, single runs of each variant distinguish nothing."


def outcome(label, *tests):
    chosen = recipe("zinc")
    records = [
        Record(recipe=asdict(chosen), seed=seed, metric="mae", best=Best(0, test, test))
        for seed, test in enumerate(tests)
    ]
    return Outcome(Variant(label, chosen), records)


def test_titles_claim_only_what_the_t_test_does():
    title = ablations._compared("blurring", "a positive kernel", "a kernel of any sign")
    noisy = title([outcome("flexible", 0.096, 0.104), outcome("blurring", 0.103, 0.104)])
    assert noisy == "A positive kernel is not distinguished from a kernel of any sign: 0.1035 ± 0.0007, 0.1000 ± 0.0057"
    assert "is worse than" in title([outcome("flexible", 0.100, 0.101), outcome("blurring", 0.150, 0.151)])
    assert "is better than" in title([outcome("flexible", 0.150, 0.151), outcome("blurring", 0.100, 0.101)])
    assert "is not distinguished from" in title([outcome("flexible", 0.1), outcome("blurring", 0.2)])


def test_encodings_that_are_not_distinguished_share_the_title():
    encodings = [outcome("RRWP", 0.096, 0.104), outcome("RD", 0.095, 0.098), outcome("SPD", 0.150, 0.151)]
    assert (
        ablations._best_encodings(encodings)
        == "RD has the best mean, RRWP not distinguished from it; SPD is worse than RD"
    )
    assert ablations._best_encodings(encodings[1:]) == "RD has the best mean; SPD is worse than RD"


def test_the_warm_up_shortens_with_the_epochs():
    chosen = recipe("zinc")
    assert shortened(chosen, None) is chosen
    short = shortened(chosen, 200).training
    assert (short.epochs, short.warmup_epochs) == (200, 5)


def test_runs_kept_before_recipes_had_more_values_are_found():
    base = recipe("zinc")
    assert digest(base) == "fb9d2159"
    assert digest(replace(base, training=replace(base.training, optimizer="sgd"))) != digest(base)
    assert digest(replace(base, data=replace(base.data, split_number=1))) != digest(base)
    assert digest(replace(base, training=replace(base.training, ema_decay=0.99))) != digest(base)
