"""Compile the Triton kernels of a step in parallel, and tell the user: the first step on a machine waits for them.

Triton compiles a kernel when it is first launched, so the kernels of a step would be compiled one after the other.
Inside `ahead` a step goes through its launches without running them: each only hands its kernel to a pool of threads.
They run in parallel, since Triton's compiler rarely holds Python's global lock.

Triton keeps compiled kernels in ~/.triton/cache, or in $TRITON_CACHE_DIR, for later runs with any seed: a folder that
moves with the runs saves other machines the time.
"""

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
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
    """Tell that kernels of a step are being compiled in this context, and afterwards how many and how long it took."""
    counts = Counts()
    if not has_triton():
        yield counts
        return
    from triton import knobs

    before, start = knobs.compilation.listener, time.perf_counter()
    lock = threading.Lock()  # kernels that are compiled ahead come from several threads

    def listen(*, cache_hit: bool, **more: Any) -> None:
        with lock:
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


@contextmanager
def ahead() -> Iterator[None]:
    """Launches of Triton kernels in this context, from any thread, compute nothing; at its end all are compiled.

    Values computed from their results are meaningless. A kernel that does not compile raises when it is launched.
    """
    if not has_triton():
        yield
        return
    from triton.runtime import _async_compile, jit

    run = jit.JITFunction.run
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        mode = _async_compile.AsyncCompileMode(pool, ignore_errors=True)

        def compile_only(function: Any, *arguments: Any, grid: Any, warmup: bool, **options: Any) -> Any:
            # Set here, since the backward pass launches from threads of its own.
            token = _async_compile.active_mode.set(mode)
            try:
                return run(function, *arguments, grid=grid, warmup=True, **options)
            finally:
                _async_compile.active_mode.reset(token)

        jit.JITFunction.run = compile_only
        try:
            yield
        finally:
            jit.JITFunction.run = run
            mode.__exit__(None, None, None)
