"""What is said while Triton kernels are compiled: the first step on a machine waits for them.

Triton keeps what it has compiled in ~/.triton/cache, or where $TRITON_CACHE_DIR says, and reads it there in later runs,
whatever their seed: a folder that moves with the runs spares other machines the time.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ckgconv.ops.dispatch import has_triton

Tell = Callable[[str], None]


@dataclass
class Counts:
    """Kernels that were compiled, or read from the cache."""

    compiled: int = 0
    cached: int = 0


@contextmanager
def compiling(what: str, tell: Tell) -> Iterator[Counts]:
    """Say so where kernels of a step are compiled in this context, and afterwards how many and how long it took."""
    counts = Counts()
    if not has_triton():
        yield counts
        return
    from triton import knobs

    before, start = knobs.compilation.listener, time.perf_counter()

    def listen(*, cache_hit: bool, **more: Any) -> None:
        if not cache_hit and not counts.compiled:
            tell(f"Compiling the Triton kernels of {what}; later runs find them in {knobs.cache.dir}.")
        counts.compiled += not cache_hit
        counts.cached += cache_hit
        if before is not None:
            before(cache_hit=cache_hit, **more)

    knobs.compilation.listener = listen
    try:
        yield counts
    finally:
        knobs.compilation.listener = before
    if counts.compiled:
        seconds = time.perf_counter() - start
        tell(f"{what.capitalize()}: {counts.compiled} kernels compiled, {counts.cached} found, {seconds:.0f} s.")
