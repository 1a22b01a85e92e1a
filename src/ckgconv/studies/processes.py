"""Parts of a study run concurrently, each in a process of its own.

Processes are spawned, since CUDA does not survive a fork; the number of threads of the calling process stays as it is.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
Tasks = Sequence[tuple[Any, ...]]


def in_processes(
    function: Callable[..., Result], tasks: Tasks, workers: int, threads: int, per_process: int | None = None
) -> list[Result]:
    """`function(*task)` of each task, in their order: `workers` at a time, each with `threads` threads.

    A process ends after `per_process` tasks; None: it serves until the end.
    """
    initial = (get_context("spawn"), torch.set_num_threads, (threads,))
    with ProcessPoolExecutor(workers, *initial, max_tasks_per_child=per_process) as pool:
        return list(pool.map(function, *zip(*tasks, strict=True)))


def in_one_thread(function: Callable[..., Result], tasks: Tasks) -> list[Result]:
    """The same on all cores, each task in one thread.

    With several threads sums have another order, and training may end in another network: numbers would depend on the
    machine.
    """
    workers = torch.get_num_threads()
    if workers == 1 or not tasks:
        return [function(*task) for task in tasks]
    return in_processes(function, tasks, workers, threads=1)
