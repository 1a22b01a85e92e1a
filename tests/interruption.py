"""Runs that stop in the middle."""


class Interruption(Exception):
    pass


class StopAfter:
    """A watcher that interrupts the run in the middle of an epoch, as a kill would."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.warnings: list[str] = []

    def start(self, run, first_epoch):
        self.first_epoch = first_epoch

    def step(self, graphs, loss):
        self.steps -= 1
        if self.steps == 0:
            raise Interruption

    def epoch(self, entry): ...

    def warn(self, sentence):
        self.warnings.append(sentence)
