"""Streams that run nothing beside anything, and only write down what waits for what."""

from contextlib import contextmanager

import torch


class Stream:
    def __init__(self, name, log):
        self.name, self.log = name, log

    def wait_stream(self, other):
        self.log.append(f"{self.name} waits for {other.name}")

    def wait_event(self, event):
        self.log.append(f"{self.name} waits for {event}")

    def record_event(self):
        return f"a point of {self.name}"


def fake_streams(monkeypatch, count):
    """The log, so many sides, and a launch that writes down its stream: main, unless it is beside."""
    log = []
    main, *sides = (Stream(name, log) for name in ("main", *"abcdefgh"[:count]))
    current = [main]

    @contextmanager
    def on(stream):
        current.append(stream)
        yield
        current.pop()

    monkeypatch.setattr(torch.cuda, "current_stream", lambda: current[-1])
    monkeypatch.setattr(torch.cuda, "stream", on)
    return log, sides, lambda name: log.append(f"{name} on {current[-1].name}")
