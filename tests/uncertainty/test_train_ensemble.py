"""What is refused before an ensemble is trained; `tests/cli/test_ensemble_options.py` trains one."""

from dataclasses import replace

import pytest

from ckgconv import InputError, recipe
from ckgconv.uncertainty.train_ensemble import EnsembleJob, train_ensemble


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"size": 1}, "The size of the ensemble is 1: give a whole number of at least 2"),
        ({"size": 10**6}, "give a smaller number"),
        ({"at_once": 0}, "The number of members at once is 0"),
        ({"resume": True}, "holds no run to resume"),
    ],
)
def test_wrong_jobs_are_a_sentence(tmp_path, change, sentence):
    job = EnsembleJob(recipe("zinc-demo"), tmp_path / "all", size=2)
    with pytest.raises(InputError, match=sentence):
        train_ensemble(replace(job, **change))
    assert not (tmp_path / "all").exists()


def test_members_have_consecutive_seeds_and_folders_of_their_own(tmp_path):
    job = EnsembleJob(recipe("zinc-demo"), tmp_path, size=3, seed=7, device="cpu")
    assert [(each.seed, each.folder.name) for each in job.jobs] == [(7, "member0"), (8, "member1"), (9, "member2")]
    assert 1 <= job.processes <= 3
    assert replace(job, at_once=8).processes == 3
    (tmp_path / "recipe.json").write_text("{}")
    with pytest.raises(InputError, match="holds a run: choose another folder with --out"):
        job.check()
