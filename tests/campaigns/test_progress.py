"""What is done and left, and how long it may take."""

import pytest
import torch
from campaign_files import SMALL, adopted
from records import write_run

from ckgconv.campaigns.progress import (
    DONE,
    FAILED,
    STOPPED,
    UNTESTED,
    WAITING,
    counts,
    differences,
    duration,
    epoch_time,
    expected,
    progress_of,
)
from ckgconv.engine.record import Epoch, Record, new_record, write_record


def write(folder, place: int, test: float | None = None, **more) -> None:
    planned = folder.campaign().runs()[place]
    write_run(folder.run(planned), planned.seed, test, planned.resolved(), precision=planned.precision, **more)


def test_states_and_the_expected_time(tmp_path):
    folder = adopted(tmp_path, grid={"seeds": [0, 1, 2, 3], "changes": [SMALL, [*SMALL[:4], "training.epochs=50"]]})
    write(folder, 0, epochs=3)
    write(folder, 1, epochs=1, at_once=2)
    folder.write_failures({folder.campaign().runs()[2].name: "No luck."})
    found = progress_of(folder)
    assert [each.state for each in found] == [DONE, STOPPED, FAILED, *[WAITING] * 5]
    assert found[2].failure == "No luck."
    seconds = (10 / 3 + 10) / 2  # in 10 s, of which 2 are training, a run had 3 epochs, another one 1
    assert found[1].epoch_seconds == pytest.approx(seconds)
    assert [each.left_seconds for each in found[:4]] == pytest.approx([0.0, 2 * seconds, 0.0, 3 * seconds])
    assert [each.left_seconds for each in found[4:]] == pytest.approx(
        [50 * seconds] * 4
    )  # as the same recipe with other changes
    assert expected(found) == f"about {duration((5 + 4 * 50) * seconds / 2)} at 2 at once"
    assert expected(found[:1]) == "nothing"
    assert counts(found) == "1 done, 1 stopped, 5 waiting, 1 failed"


def test_nothing_is_known_of_a_recipe_or_precision_that_was_not_trained(tmp_path):
    grid = {"recipes": ["zinc-demo", "zinc"], "precisions": ["32", "bf16"]}
    folder = adopted(tmp_path, grid=grid)
    write(folder, 0, epochs=1)
    found = progress_of(folder)
    assert [each.left_seconds is None for each in found] == [False, True, True, True]
    assert expected(found) == "about 20 s at 1 at once and 3 runs of unknown length"


def test_differences_leave_out_what_all_runs_share(tmp_path):
    wider = [*SMALL[:3], "model.width=16", *SMALL[4:]]
    folder = adopted(tmp_path, grid={"changes": [SMALL, wider, [*SMALL, "model.drop_path=0.1"]]})
    found = differences(progress_of(folder))
    assert found == [("model.width=8",), ("model.width=16",), ("model.drop_path=0.1", "model.width=8")]
    assert differences(progress_of(folder)[:1]) == [()]


def test_a_run_that_was_killed_in_its_first_epoch_waits(tmp_path):
    folder = adopted(tmp_path)
    planned = folder.campaign().runs()[0]
    begun = new_record(planned.resolved(), planned.seed, 9, torch.device("cpu"), planned.precision)
    write_record(folder.run(planned), begun)
    assert (progress_of(folder)[0].state, progress_of(folder)[0].done) == (WAITING, 0)


def test_runs_of_a_final_campaign_are_done_when_tested(tmp_path):
    folder = adopted(tmp_path, final=True, grid={"seeds": [0, 1, 2]})
    write(folder, 0, epochs=3)
    write(folder, 1, 0.5, epochs=3)
    counted = {"name": "zinc", "given": False, "graphs": 6, "nodes": 9, "edges": 9, "digest": "x"}
    write(folder, 2, epochs=3, data={**counted, "train": 6, "val": 6, "test": 0})  # nothing to test
    assert [each.state for each in progress_of(folder)] == [UNTESTED, DONE, DONE]


def test_epochs_that_compile_do_not_count_in_what_one_more_takes():
    epochs = [Epoch(place, 1.0, 1.0, 1e-3, seconds) for place, seconds in enumerate((30.0, 1.0, 1.2, 1.1, 25.0))]
    record = Record(recipe={}, seed=0, metric="mae", epochs=epochs, wall_s=58.3 + 1.0)
    assert epoch_time(record) == pytest.approx(1.2 + 0.2)
    record.wall_s = 0.0  # of a record that does not know it
    assert epoch_time(record) == 1.2


def test_durations():
    assert [duration(each) for each in (3, 600, 36000)] == ["3 s", "10 min", "10.0 h"]
