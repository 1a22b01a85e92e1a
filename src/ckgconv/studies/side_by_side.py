"""Parts of a study on all cores, each in one thread.

With several threads sums have another order, and a network in training may end elsewhere: numbers would hang on the
machine. In processes of their own, since the number of threads is not to be changed in the one that calls.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")


def side_by_side(function: Callable[..., Result], tasks: Sequence[tuple[Any, ...]]) -> list[Result]:
    """`function(*task)` of each task, in their order; as many at once as torch has threads."""
    if torch.get_num_threads() == 1 or not tasks:
        return [function(*task) for task in tasks]
    with ProcessPoolExecutor(torch.get_num_threads(), get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        return list(pool.map(function, *zip(*tasks, strict=True)))
