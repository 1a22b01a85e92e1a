"""Parts of a study side by side, in processes of their own.

Spawned, since CUDA does not survive a fork; and the number of threads is not to be changed in the process that calls.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
Tasks = Sequence[tuple[Any, ...]]


def side_by_side(
    function: Callable[..., Result], tasks: Tasks, workers: int, threads: int, per_process: int | None = None
) -> list[Result]:
    """`function(*task)` of each task, in their order: so many at once, each with so many threads.

    A process ends after `per_process` tasks, never where None.
    """
    initial = (get_context("spawn"), torch.set_num_threads, (threads,))
    with ProcessPoolExecutor(workers, *initial, max_tasks_per_child=per_process) as pool:
        return list(pool.map(function, *zip(*tasks, strict=True)))


def in_one_thread(function: Callable[..., Result], tasks: Tasks) -> list[Result]:
    """The same on all cores, each task in one thread.

    With several, sums have another order, and a network in training may end elsewhere: numbers would hang on the
    machine.
    """
    workers = torch.get_num_threads()
    if workers == 1 or not tasks:
        return [function(*task) for task in tasks]
    return side_by_side(function, tasks, workers, threads=1)
