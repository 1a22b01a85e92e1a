"""Grids that a campaign has trained: the studies read its runs and train nothing."""

import pytest
from records import write_run

from ckgconv.campaigns.plan import read_campaign
from ckgconv.studies import STUDIES, Options, ablations, grid
from ckgconv.studies.grid import digest, shortened

NAMES = ["support", "kernel-depth", "pe", "flexibility", "normalisation", "degree"]
EPOCHS = 400


class Asked(Exception):
    """The variants of a study, in place of their runs."""


def test_the_campaign_trains_every_variant_of_every_study(monkeypatch):
    def ask(variants, options):
        raise Asked(*(digest(shortened(each.recipe, options.epochs)) for each in variants))

    monkeypatch.setattr(ablations, "run_grid", ask)
    asked = set()
    for name in NAMES:
        with pytest.raises(Asked) as found:
            STUDIES[name].run(Options(epochs=EPOCHS))
        asked |= set(found.value.args)
    assert asked == {digest(run.resolved()) for run in read_campaign("ablations-zinc").runs()}


def test_a_study_reads_the_runs_of_a_campaign(tmp_path, monkeypatch):
    runs = read_campaign("ablations-zinc").runs()
    for place, run in enumerate(runs):
        write_run(tmp_path / run.name, run.seed, 0.1 + place / 100, run.resolved(), precision="bf16")
    monkeypatch.setattr(grid, "train", None)  # nothing is trained
    options = Options(seeds=(0, 1), epochs=EPOCHS, precision="bf16", keep=tmp_path)
    report = STUDIES["pe"].run(options)
    assert report.rows[0][:3] == ("RRWP", "0.059 ± 0.003", "0.1050 ± 0.0071")
    assert [row[0] for row in report.rows] == ["RRWP", "RD", "SPD", "pair-RWSE"]
    with pytest.raises(TypeError):  # of another precision none is there
        STUDIES["pe"].run(Options(seeds=(0, 1), epochs=EPOCHS, precision="32", keep=tmp_path))
