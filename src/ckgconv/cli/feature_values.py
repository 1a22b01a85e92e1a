"""Values of the user's own columns for one molecule: --feature ph=7.4; --feature ph= where it is unknown."""

import math
import shlex
from collections.abc import Sequence

from ckgconv.checks import InputError, require
from ckgconv.data.table import is_missing
from ckgconv.registry import nearest


def given_features(columns: Sequence[str], given: Sequence[str]) -> list[float]:
    """The values of columns from NAME=VALUE, NaN where there is no value; every column must be given."""
    values: dict[str, float] = {}
    for text in given:
        name, mark, value = text.partition("=")
        require(bool(columns), f"--feature {name} was given, but the network reads molecules alone: leave it out.")
        require(bool(mark), f"--feature {text!r} has no value: give {name}=NUMBER, or {name}= where it is unknown.")
        if name not in columns:
            raise InputError(f"The network reads no column {name!r}: {nearest(name, list(columns))}")
        try:
            values[name] = math.nan if is_missing(value) else float(value)
        except ValueError as error:
            raise InputError(f"--feature {name} is {value!r}: give a number, with a decimal point.") from error
        require(not math.isinf(values[name]), f"--feature {name} is {value}: give a finite number.")
    missing = " ".join(f"--feature {shlex.quote(f'{name}=NUMBER')}" for name in columns if name not in values)
    require(
        not missing,
        f"The network reads {', '.join(columns)} beside each molecule: give {missing}, without a number where it is "
        f"unknown.",
    )
    return [values[name] for name in columns]
