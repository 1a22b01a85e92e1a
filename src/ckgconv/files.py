"""Files written whole or not at all: to a temporary file, synchronised, then renamed; digests reveal later damage."""

import errno
import hashlib
import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ckgconv.checks import InputError


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file next to `path`, then rename it to `path`; on failure nothing has changed."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write(part)
        with part.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(part, path)
    except Exception as error:
        if part.exists():
            part.unlink()
        if (isinstance(error, OSError) and error.errno == errno.ENOSPC) or "No space left" in str(error):
            raise InputError(
                f"The disk is full: {path} could not be written. Earlier files are intact; free some space and run the "
                f"command again, training with --resume."
            ) from error
        if isinstance(error, OSError):
            raise InputError(f"{path} could not be written ({error.strerror}): choose another folder.") from error
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_whole(path, lambda part: part.write_text(text, encoding="utf-8"))


def read_text(path: Path, remedy: str) -> str:
    """The content of a text file; `remedy` ends the error message where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as text ({type(error).__name__}): {remedy}") from error


def valid_json(values: Any, indent: int | None = None) -> str:
    """JSON that every parser reads: NaN and infinities, which JSON cannot represent, become null."""
    return json.dumps(_with_nulls(values), indent=indent, allow_nan=False)


def digest(data: bytes) -> str:
    """SHA-256, in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _with_nulls(values: Any) -> Any:
    if isinstance(values, dict):
        return {name: _with_nulls(value) for name, value in values.items()}
    if isinstance(values, list | tuple):
        return [_with_nulls(value) for value in values]
    return None if isinstance(values, float) and not math.isfinite(values) else values
