"""Side streams of a step, on fake streams that only log what waits for what."""

import pytest
from fake_streams import fake_streams

from ckgconv.backends.cuda.streams import IN_ORDER, SideStreams


@pytest.fixture
def fakes(monkeypatch):
    return fake_streams(monkeypatch, 2)


def nothing() -> None:
    """No batch to prefetch."""


def test_deferred_launches_begin_where_the_main_stream_flushes_them(fakes):
    log, sides, launch = fakes
    streams = SideStreams(sides, nothing)
    with streams.side_stream():
        launch("stem")
        streams.flush_deferred()
        streams.defer(lambda: launch("its sums"))
    streams.defer(lambda: launch("matrices"))
    launch("stages")
    assert log == ["a waits for main", "stem on a", "its sums on a", "stages on main"]
    log.clear()
    streams.flush_deferred()
    assert log == ["a waits for a point of main", "b waits for a point of main", "matrices on b"]
    log.clear()
    streams.defer(lambda: launch("sums"))
    streams.join()
    assert log[-3:] == ["sums on a", "main waits for a", "main waits for b"]


def test_launches_may_begin_at_an_earlier_point(fakes):
    log, sides, launch = fakes
    streams = SideStreams(sides, nothing)
    begin = streams.point()
    launch("pairs")
    with streams.side_stream(since=begin):
        launch("nodes")
    assert log == ["pairs on main", "a waits for a point of main", "nodes on a"]


def test_the_main_stream_goes_first(fakes):
    log, sides, launch = fakes
    streams = SideStreams(sides, nothing)
    streams.defer(lambda: launch("matrices"))
    point = streams.point()
    launch("stages")
    streams.flush_deferred(since=point)
    assert log == ["stages on main", "a waits for a point of main", "matrices on a"]


def test_an_earlier_point_is_for_streams_that_have_not_begun(fakes):
    _, sides, _ = fakes
    streams = SideStreams(sides, nothing)
    for _ in sides:
        with streams.side_stream():
            pass
    with pytest.raises(AssertionError), streams.side_stream(since=streams.point()):
        pass


def test_the_next_batch_is_prefetched_once(fakes):
    log, sides, launch = fakes
    streams = SideStreams(sides, lambda: launch("next batch"))
    streams.wait_for_prefetch()
    assert log == []
    streams.start_prefetch()
    streams.wait_for_prefetch()
    streams.finish()
    assert log == ["next batch on main", "main waits for a point of main"]


def test_without_side_streams_everything_runs_where_it_stands():
    ran = []
    IN_ORDER.defer(lambda: ran.append(1))
    with IN_ORDER.side_stream(since=IN_ORDER.point()):
        ran.append(2)
    IN_ORDER.flush_deferred()
    IN_ORDER.start_prefetch()
    IN_ORDER.wait_for_prefetch()
    IN_ORDER.join()
    assert ran == [1, 2]
