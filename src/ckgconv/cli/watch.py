"""Watchers for the terminal: a progress bar with loss, validation metric, graphs per second and time left."""

import sys
import time

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from ckgconv.cli.terminal import plain
from ckgconv.engine.record import Epoch
from ckgconv.engine.run import Run
from ckgconv.engine.watcher import Silence


class Quiet(Silence):
    """A `Watcher` for `--json`: warnings on standard error, nothing else."""

    def warn(self, sentence: str) -> None:
        print(plain(sentence), file=sys.stderr)


class ProgressBar:
    """A `Watcher` that draws one line per run, with warnings above it."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("loss {task.fields[loss]:.4f}  {task.fields[metric]} {task.fields[val]}", markup=False),
            TextColumn("{task.fields[speed]:.0f} graphs/s"),
            TimeRemainingColumn(),
            console=console,
        )
        self.loss = 0.0

    def start(self, run: Run, first_epoch: int) -> None:
        self.epochs = run.recipe.training.epochs
        graphs = len(run.learner.data.train) // run.learner.fabric.world_size
        self.task = self.progress.add_task(
            self._title(min(first_epoch, self.epochs - 1)),
            total=self.epochs * graphs,
            completed=first_epoch * graphs,
            loss=0.0,
            metric=f"val {run.record.metric}",
            val="–",
            speed=0.0,
        )
        self.progress.start()
        self.seen, self.since = 0, time.perf_counter()

    def step(self, graphs: int, loss: float) -> None:
        self.loss = loss if self.loss == 0.0 else 0.95 * self.loss + 0.05 * loss
        self.seen += graphs
        speed = self.seen / (time.perf_counter() - self.since)
        self.progress.update(self.task, advance=graphs, loss=self.loss, speed=speed)

    def epoch(self, entry: Epoch) -> None:
        next_epoch = min(entry.epoch + 1, self.epochs - 1)
        self.progress.update(self.task, description=self._title(next_epoch), val=f"{entry.val:.4f}")

    def warn(self, sentence: str) -> None:
        self.console.print(sentence, style="yellow")

    def note(self, sentence: str) -> None:
        self.console.print(sentence, style="dim", markup=False, highlight=False)

    def stop(self) -> None:
        self.progress.stop()

    def _title(self, epoch: int) -> str:
        return f"epoch {epoch + 1}/{self.epochs}"
