"""The epochs of a run: each trains on all graphs once, validates, and keeps the weights of the best epoch so far."""

import math
import time
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, NoReturn

from ckgconv.checks import InputError
from ckgconv.engine.callbacks import Callbacks
from ckgconv.engine.epoch import loss_on, train_epoch
from ckgconv.engine.machine import peak_memory_mb
from ckgconv.engine.record import Epoch, write_record
from ckgconv.engine.resume import CheckpointBudget, save_best, save_checkpoint
from ckgconv.engine.saved_state import all_finite
from ckgconv.engine.selection import candidate, improves, reads_loss
from ckgconv.engine.setup import seed_epoch
from ckgconv.engine.tensorboard import TensorBoard
from ckgconv.engine.watcher import Watcher

if TYPE_CHECKING:
    from ckgconv.engine.run import Run


def train_epochs(run: "Run", first_epoch: int, watcher: Watcher, callbacks: Callbacks) -> None:
    """All epochs that are left; curves are closed however they end, since a thread of their own writes them."""
    board = None
    if run.folder is not None and run.writes:
        board = TensorBoard(run.folder, first_epoch, watcher.warn)
    with nullcontext() if board is None else closing(board):
        _each_epoch(run, first_epoch, watcher, callbacks, board)


def _each_epoch(
    run: "Run", first_epoch: int, watcher: Watcher, callbacks: Callbacks, board: TensorBoard | None
) -> None:
    epochs = run.recipe.training.epochs
    _warn_of_warm_up(run, watcher)
    watcher.start(run, first_epoch)
    earlier = run.record.wall_s  # seconds before the run was resumed
    start, budget = time.perf_counter(), CheckpointBudget()
    for number in range(first_epoch, epochs):
        if callbacks.stopped or run.record.out_of_patience(run.recipe.training.patience):
            break
        epoch = _run_epoch(run, number, watcher, callbacks)
        last = callbacks.epoch(epoch) or number == epochs - 1
        run.record.wall_s = round(earlier + time.perf_counter() - start, 3)
        run.record.peak_memory_mb = peak_memory_mb(run.learner.fabric.device)
        if run.writes and (last or budget.allows()):
            with budget:
                save_checkpoint(run, number)
        if board is not None:
            board.add(epoch)
        watcher.epoch(epoch)


def _warn_of_warm_up(run: "Run", watcher: Watcher) -> None:
    training = run.recipe.training
    if "schedule" not in run.recipe.given and 1 < training.epochs <= training.warmup_epochs:
        watcher.warn(
            f"training.warmup_epochs is {training.warmup_epochs} and training.epochs {training.epochs}: the learning "
            f"rate never leaves its warm-up, and next to nothing is learned."
        )


def _run_epoch(run: "Run", number: int, watcher: Watcher, callbacks: Callbacks) -> Epoch:
    """Train and validate once; keep the weights, averaged where asked for, if `selection` prefers them."""
    record, training = run.record, run.recipe.training
    seed_epoch(record.seed, number)

    def tick(graphs: int, loss: float) -> bool:
        watcher.step(graphs, loss)
        return callbacks.step(graphs, loss) or not math.isfinite(loss)

    trained = train_epoch(run.learner, number, tick)
    if not math.isfinite(trained["train_loss"]) or not all_finite(run.model):
        _stop_diverged(run, number, trained["train_loss"])
    trained["seconds"] = round(trained["seconds"], 3)
    with run.learner.averaged():
        val = run.evaluate("val")
        epoch = Epoch(**trained, val=val, val_loss=loss_on(run.learner, "val") if reads_loss(training) else None)
        record.epochs.append(epoch)
        run.mean.add(number, run.model.state_dict())
        found = candidate(record.epochs, training)
        if improves(found, record.best, training, run.learner.task.metric):
            record.best = found
            run.best_weights = {name: value.detach().clone() for name, value in run.model.state_dict().items()}
    run.learner.schedule.end(epoch.val)
    return epoch


def _stop_diverged(run: "Run", number: int, loss: float) -> NoReturn:
    """End a run whose weights are lost; the network of its best epoch before is kept."""
    best, kept = run.record.best, "No network is kept, since no epoch had ended."
    if best is not None and run.folder is None:
        kept = "Nothing is kept of a run without a folder."
    elif best is not None and run.folder is not None:
        kept = f"{run.folder} keeps the network of epoch {best.epoch + 1}, the best one before."
        if run.writes:
            save_best(run)
            write_record(run.folder, run.record)
    what = "some weights are infinite or NaN" if math.isfinite(loss) else f"the loss is {loss}"
    raise InputError(
        f"Training diverged in epoch {number + 1}: {what}. {kept} Train again with a smaller training.learning_rate, "
        f"or with training.scale_targets=true where targets are large."
    )
