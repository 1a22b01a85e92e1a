"""Side streams of a step, on fake streams that only log what waits for what."""

import pytest
from fake_streams import fake_streams

from ckgconv.backends.cuda.schedule import IN_ORDER, Schedule


@pytest.fixture
def streams(monkeypatch):
    return fake_streams(monkeypatch, 2)


def nothing() -> None:
    """No batch to prefetch."""


def test_deferred_launches_begin_where_the_main_stream_flushes_them(streams):
    log, sides, launch = streams
    schedule = Schedule(sides, nothing)
    with schedule.side_stream():
        launch("stem")
        schedule.flush_deferred()
        schedule.defer(lambda: launch("its sums"))
    schedule.defer(lambda: launch("matrices"))
    launch("stages")
    assert log == ["a waits for main", "stem on a", "its sums on a", "stages on main"]
    log.clear()
    schedule.flush_deferred()
    assert log == ["a waits for a point of main", "b waits for a point of main", "matrices on b"]
    log.clear()
    schedule.defer(lambda: launch("sums"))
    schedule.join()
    assert log[-3:] == ["sums on a", "main waits for a", "main waits for b"]


def test_launches_may_begin_at_an_earlier_point(streams):
    log, sides, launch = streams
    schedule = Schedule(sides, nothing)
    begin = schedule.point()
    launch("pairs")
    with schedule.side_stream(since=begin):
        launch("nodes")
    assert log == ["pairs on main", "a waits for a point of main", "nodes on a"]


def test_the_main_stream_goes_first(streams):
    log, sides, launch = streams
    schedule = Schedule(sides, nothing)
    schedule.defer(lambda: launch("matrices"))
    point = schedule.point()
    launch("stages")
    schedule.flush_deferred(since=point)
    assert log == ["stages on main", "a waits for a point of main", "matrices on a"]


def test_an_earlier_point_is_for_streams_that_have_not_begun(streams):
    _, sides, _ = streams
    schedule = Schedule(sides, nothing)
    for _ in sides:
        with schedule.side_stream():
            pass
    with pytest.raises(AssertionError), schedule.side_stream(since=schedule.point()):
        pass


def test_the_next_batch_is_prefetched_once(streams):
    log, sides, launch = streams
    schedule = Schedule(sides, lambda: launch("next batch"))
    schedule.wait_for_prefetch()
    assert log == []
    schedule.start_prefetch()
    schedule.wait_for_prefetch()
    schedule.finish()
    assert log == ["next batch on main", "main waits for a point of main"]


def test_without_a_schedule_everything_runs_where_it_stands():
    ran = []
    IN_ORDER.defer(lambda: ran.append(1))
    with IN_ORDER.side_stream(since=IN_ORDER.point()):
        ran.append(2)
    IN_ORDER.flush_deferred()
    IN_ORDER.start_prefetch()
    IN_ORDER.wait_for_prefetch()
    IN_ORDER.join()
    assert ran == [1, 2]
