"""A door that fails in every way there is, to test the runner."""

import os
import time
from pathlib import Path

from hostile.door import Door
from hypothesis import strategies as st

from ckgconv.checks import InputError


def enter(case: bytes, folder: Path) -> None:
    if case == b"sentence":
        raise InputError("This is wrong: change it.")
    if case == b"unclear":
        raise InputError("two\nlines")
    if case == b"traceback":
        raise KeyError("x")
    if case == b"outside":
        (folder.parent / "elsewhere").touch()
    if case == b"memory":
        bytearray(5 * 2**30)
    if case == b"crash":
        os.abort()
    if case == b"hang":
        time.sleep(100)
    assert case != b"wrong"


DOOR = Door("probe", st.just(b"result"), enter)
