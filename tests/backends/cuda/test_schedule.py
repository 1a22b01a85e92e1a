"""Launches beside the main chain of a step, on streams that only write down what waits for what."""

import pytest
from fake_streams import fake_streams

from ckgconv.backends.cuda import schedule as module
from ckgconv.backends.cuda.schedule import beside, has_places, now, overlapping, put_off, together


@pytest.fixture
def streams(monkeypatch):
    return fake_streams(monkeypatch, 2)


def test_what_is_put_off_begins_where_the_main_chain_has_places(streams):
    log, sides, launch = streams
    with overlapping(sides, lambda: None):
        with beside():
            launch("stem")
            has_places()
            put_off(lambda: launch("its sums"))
        put_off(lambda: launch("matrices"))
        launch("stages")
        assert log == ["a waits for main", "stem on a", "its sums on a", "stages on main"]
        log.clear()
        has_places()
        assert log == ["a waits for a point of main", "b waits for a point of main", "matrices on b"]
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


def test_the_main_chain_goes_first(streams):
    log, sides, launch = streams
    with overlapping(sides, lambda: None):
        put_off(lambda: launch("matrices"))
        point = now()
        launch("stages")
        has_places(since=point)
        assert log == ["stages on main", "a waits for a point of main", "matrices on a"]


def test_an_earlier_point_is_for_streams_that_have_not_begun(streams):
    _, sides, _ = streams
    with overlapping(sides, lambda: None):
        for _ in sides:
            with beside():
                pass
        with pytest.raises(AssertionError), beside(since=now()):
            pass


def test_outside_of_a_step_everything_runs_where_it_stands():
    ran = []
    put_off(lambda: ran.append(1))
    with beside(since=now()):
        ran.append(2)
    has_places()
    together()
    assert ran == [1, 2]
