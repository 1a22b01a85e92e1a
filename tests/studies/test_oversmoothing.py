import pytest

from ckgconv.studies import Options
from ckgconv.studies.oversmoothing import oversmoothing


@pytest.fixture(scope="module")
def report():
    return oversmoothing(Options(seeds=(0,), epochs=100))


def test_six_layers_of_ckgcn_keep_what_six_layers_of_gcn_lose(report):
    accuracy = {name: [run["accuracy"] for run in runs] for name, runs in report.values.items()}
    assert accuracy["6-layer GCN"] == [50]
    for name in ("2-layer GCN", "2-layer CKGCN", "6-layer CKGCN"):
        assert accuracy[name] == [100]
    assert report.title == "At six layers CKGCN returns 100 % of an alternating signal, GCN 50 %"


def test_the_paper_is_next_to_ours(report):
    assert [row[1] for row in report.rows] == ["0.071 ± 0.044", "0.693 ± 2e-05", "4e-05 ± 2e-05", "0.0 ± 0.0"]
    assert all(len(row) == len(report.columns) for row in report.rows)


def test_epochs_are_read():
    short = oversmoothing(Options(seeds=(3,), epochs=2))
    assert short.seeds == (3,)
    assert all(run["loss"] > 0.6 for runs in short.values.values() for run in runs)
