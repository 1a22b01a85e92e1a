"""The process that trains one run of a campaign, which its only argument, a task as JSON, describes.

It ends with the process that started it, whose end closes its standard input. Where its time is limited it ends after
the last epoch that fits, with a checkpoint. The test split is read only after the last epoch of a run whose campaign
is final.

Under the CUDA multi-process service a process that ends while its kernels run takes those of all others with it: a
worker that has to end first waits for its own.
"""

import _thread
import json
import os
import signal
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from pydantic import with_config

from ckgconv.campaigns.beginning import EPOCH, NOTE
from ckgconv.campaigns.folder import CampaignFolder
from ckgconv.campaigns.plan import PlannedRun
from ckgconv.checks import InputError
from ckgconv.engine.opened import open_run
from ckgconv.engine.record import Epoch
from ckgconv.engine.run import Run, record_test, train
from ckgconv.engine.run_folder import has_run
from ckgconv.engine.watcher import Silence
from ckgconv.recipe.values import SETTINGS, convert

# Seconds that a worker has to end: replays of a long epoch may have been launched already.
PATIENCE = 30.0
# Exit codes: told to end, and an error of the device, after which the run goes on from its checkpoint.
INTERRUPTED, GPU_FAILED = 130, 75


@with_config(SETTINGS)
@dataclass(frozen=True)
class Task:
    """A run of a campaign, and how to train it."""

    folder: str
    name: str
    device: str
    at_once: int  # runs that share the device
    threads: int | None = None  # of a CPU; None: as torch chooses
    until: float | None = None  # seconds since 1970 at which to end; None: with the run
    data_dir: str | None = None

    @property
    def command(self) -> list[str]:
        """What starts the process."""
        program = "from ckgconv.campaigns.worker import main; main()"
        return [sys.executable, "-u", "-c", program, json.dumps(asdict(self))]


class Log(Silence):
    """A watcher that prints a line per epoch."""

    def epoch(self, entry: Epoch) -> None:
        loss, val = f"loss {entry.train_loss:.4f}", f"val {entry.val:.4f}"
        print(f"{EPOCH}{entry.epoch + 1}: {loss}, {val}, {entry.seconds:.2f} s")

    def warn(self, sentence: str) -> None:
        print(sentence)

    def note(self, sentence: str) -> None:
        print(f"{NOTE}{sentence}")


class Piece:
    """A callback that ends training before the epoch that would no longer fit."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.last: float | None = None  # when the epoch before ended

    def on_epoch(self, run: Run, epoch: Epoch) -> bool:
        run.record.at_once = self.task.at_once
        now = time.time()
        took = epoch.seconds if self.last is None else now - self.last
        self.last = now
        return self.task.until is not None and now + took > self.task.until


def work(task: Task) -> None:
    """Train a run as far as its time allows; test it where it has ended and its campaign is final."""
    folder = CampaignFolder(Path(task.folder))
    campaign = folder.campaign()
    planned = {each.name: each for each in campaign.runs()}[task.name]
    record = folder.record(planned)
    if task.threads is not None:
        torch.set_num_threads(task.threads)
    if record is None or not record.ended:
        run = _trained(task, planned, folder.run(planned))
    elif campaign.final:
        run = open_run(folder.run(planned), task.device, data=task.data_dir)
    else:
        return
    if campaign.final and run.record.ended:
        record_test(run)


def _trained(task: Task, planned: PlannedRun, folder: Path) -> Run:
    return train(
        planned.resolved(),
        planned.seed,
        data=task.data_dir,
        folder=folder,
        resume=has_run(folder),
        device=task.device,
        precision=planned.precision,
        watcher=Log(),
        callbacks=[Piece(task)],
        test=False,
    )


def end_with_parent() -> None:
    """End this process where its standard input is closed, after its kernels; files are written whole or not at all."""
    # A shell lets what it starts in the background ignore interruptions, and such a worker would train on for PATIENCE.
    signal.signal(signal.SIGINT, signal.default_int_handler)

    def wait() -> None:
        while os.read(sys.stdin.fileno(), 1):
            pass
        _thread.interrupt_main()
        time.sleep(PATIENCE)
        os._exit(INTERRUPTED)

    threading.Thread(target=wait, daemon=True).start()


def gpu_failed(error: RuntimeError) -> bool:
    """Whether an error comes from the device or its driver, such as the end of another process on it."""
    return isinstance(error, torch.AcceleratorError) or "Triton Error [CUDA]" in str(error)


def main() -> None:
    """Entry point of the process."""
    end_with_parent()
    try:
        work(convert(json.loads(sys.argv[1]), Task, "task"))
    except InputError as error:
        print(f"Error: {error}")
        sys.exit(2)
    except KeyboardInterrupt:
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
        sys.exit(INTERRUPTED)
    except RuntimeError as error:
        if not gpu_failed(error):
            raise
        print(f"Error: The GPU failed: {str(error).splitlines()[0]}")
        sys.exit(GPU_FAILED)
