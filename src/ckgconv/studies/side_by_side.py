"""Parts of a study on all cores, each in one thread.

With several threads sums have another order, and a network in training may end elsewhere: numbers would hang on the
machine.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]) -> list[Result]:
    """`function(*task)` of each task, in their order; as many at once as torch has threads."""
    workers = min(torch.get_num_threads(), len(tasks))
    if workers <= 1:
        with one_thread():
            return [function(*task) for task in tasks]
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        return list(pool.map(function, *zip(*tasks, strict=True)))


@contextmanager
def one_thread() -> Iterator[None]:
    """Within, torch has one."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
