"""`benchmarks/at_once.py`: what it times is training, in each of its three ways."""

from pathlib import Path

import pytest
import torch

from ckgconv import InputError
from ckgconv.backends import plain
from ckgconv.engine.epoch import eager_step

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SMALL = ["data.limit=10", "model.blocks=2", "model.width=8", "model.steps=4", "training.batch_size=4"]
SMALL_RUN = ["--device", "cpu", "--epochs", "1", "--set", *SMALL]
WITHOUT_DROPOUT = ["model.kernel.dropout=0", "model.kernel.mlp_dropout=0"]


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import at_once

    return at_once


@pytest.fixture(autouse=True)
def _deterministic():
    """Stacked networks take sums in any order, and say so to torch."""
    before = torch.are_deterministic_algorithms_enabled()
    yield
    torch.use_deterministic_algorithms(before)


def options_of(at_once, *changes, precision="64"):
    return at_once.parse(["zinc", "--precision", precision, *SMALL_RUN, *changes])


def test_stacked_networks_are_trained_as_if_each_were_alone(at_once):
    from stacked import StackedStep

    options = options_of(at_once, *WITHOUT_DROPOUT)
    learners, alone = at_once.learners_of(options, 3), at_once.learners_of(options, 3)
    tables = [at_once.table_of(learner, 1) for learner in learners]
    together = StackedStep(learners, tables)
    losses = together.run(len(tables[0]), together.captured())
    for place, (learner, table) in enumerate(zip(alone, tables, strict=True)):
        plain(learner.model).train()
        assert [eager_step(learner, row[row >= 0]) for row in table][-1] == pytest.approx(losses[place], rel=1e-6)
        for name, value in learner.model.named_parameters():
            torch.testing.assert_close(together.parameters[name][place], value, rtol=1e-6, atol=1e-7)
        for name, value in learner.model.named_buffers():
            torch.testing.assert_close(together.buffers[name][place], value, rtol=1e-6, atol=1e-7)


def test_gradients_are_clipped_by_the_norm_of_each_network(at_once):
    from stacked import clipped

    gradients = [torch.tensor([[3.0, 0.0], [0.3, 0.0]]), torch.tensor([4.0, 0.4])]
    found = clipped(gradients, 1.0)
    torch.testing.assert_close(found[0], torch.tensor([[0.6, 0.0], [0.3, 0.0]]))
    torch.testing.assert_close(found[1], torch.tensor([0.8, 0.4]))


@pytest.mark.parametrize("way", ["streams", "stacked"])
def test_networks_of_a_process_are_all_trained(at_once, way, monkeypatch):
    made = []
    learners_of = at_once.learners_of
    monkeypatch.setattr(at_once, "learners_of", lambda *given: made.extend(learners_of(*given)) or made)
    losses = at_once.PREPARED[way](options_of(at_once, precision="32"), 2)()
    assert torch.get_default_dtype() == torch.float32
    assert len(losses) == len(made) == 2
    assert losses[0] != losses[1]


def test_a_thread_that_fails_is_no_time(at_once, monkeypatch):
    def failing() -> None:
        raise RuntimeError("out of memory")

    monkeypatch.setattr(at_once, "steps_of", lambda *given: failing)
    with pytest.raises(RuntimeError, match="out of memory"):
        at_once.streams(options_of(at_once, precision="32"), 2)()
    with pytest.raises(InputError, match="cannot be timed in float64"):
        at_once.streams(options_of(at_once), 2)


def test_processes_are_timed_from_the_moment_all_are_ready(at_once, monkeypatch):
    words = ["zinc", "--precision", "32", *SMALL_RUN]
    monkeypatch.setattr("sys.argv", ["at_once.py", *words])
    found = at_once.timed("processes", 1, at_once.parse(words))
    assert found["network_epoch_s"] > 0
    assert found["device"].startswith("cpu")


def test_a_process_that_ends_before_its_first_step_is_no_time(at_once, monkeypatch):
    monkeypatch.setattr(at_once, "__file__", "no such script")
    assert "before its first step" in at_once.timed("stacked", 2, options_of(at_once))["failed"]
