"""Launches beside the main chain of a step, on streams that only write down what waits for what."""

from contextlib import contextmanager

import pytest
import torch

from ckgconv.ops import beside as module
from ckgconv.ops.beside import beside, has_places, now, overlapping, put_off, together


class Stream:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")

    def wait_event(self, event):
        self.log.append(f"{self.name} waits for {event}")

    def record_event(self):
        return f"a point of {self.name}"


@pytest.fixture
def streams(monkeypatch):
    """The log, the main stream and two sides; the current stream is main unless a launch is beside."""
    log = []
    main, *sides = (Stream(name, log) for name in ("main", "a", "b"))
    current = [main]

    @contextmanager
    def on(stream):
        current.append(stream)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", on)
    return log, sides, lambda name: log.append(f"{name} on {current[-1].name}")


def test_what_is_put_off_begins_where_the_main_chain_has_places(streams):
    log, sides, launch = streams
    with overlapping(sides, lambda: None):
        with beside():
            launch("stem")
            has_places()
        put_off(lambda: launch("matrices"))
        launch("stages")
        assert log == ["a waits for main", "stem on a", "stages on main"]
        log.clear()
        has_places()
        assert log == ["a waits for main", "b waits for main", "matrices on b"]
        log.clear()
        put_off(lambda: launch("sums"))
        together()
        assert log[-3:] == ["sums on a", "main waits for a", "main waits for b"]
    assert module._overlap is None


def test_launches_may_begin_at_an_earlier_point(streams):
    log, sides, launch = streams
    with overlapping(sides, lambda: None):
        begin = now()
        launch("pairs")
        with beside(since=begin):
            launch("nodes")
        assert log == ["pairs on main", "a waits for a point of main", "nodes on a"]


def test_outside_of_a_step_everything_runs_where_it_stands():
    ran = []
    put_off(lambda: ran.append(1))
    with beside(since=now()):
        ran.append(2)
    has_places()
    together()
    assert ran == [1, 2]
