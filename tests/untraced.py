"""Interpreted Triton kernels outside coverage's tracing.

Coverage does not count them, since Triton's interpreter runs a copy of their source; but while it traces, Python runs
every line of the interpreter at half its speed.
"""

import sys
from typing import Any


def leave_kernels_untraced() -> None:
    """Suspend tracing while a grid runs."""
    try:
        from triton.runtime.interpreter import GridExecutor
    except ImportError:  # Triton is for Linux alone
        return
    run = GridExecutor.__call__

    def untraced(self: Any, *arguments: Any, **named: Any) -> Any:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return run(self, *arguments, **named)
        finally:
            sys.settrace(tracer)

    GridExecutor.__call__ = untraced
