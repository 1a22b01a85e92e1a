"""The format of all files of a run, a whole number that changes where keys get another meaning.

A file that does not name its format has the first one. Files of a later format are refused, earlier ones are read.
"""

from typing import Any

from ckgconv.checks import check_group, require, shown
from ckgconv.files import parse_json

FORMAT = 1
# What is read of a file of settings, such as a recipe: those of 100,000 columns with long names have fewer.
MOST_SETTINGS = 2**22


def group_of(text: str) -> dict[str, Any]:
    """The values of a file of JSON, of a format that is known; raises InputError with half a sentence."""
    values = parse_json(text)
    check_group("it", values)
    check_format(values.pop("format", FORMAT), "it")
    return dict(values)


def check_format(found: object, where: str) -> None:
    """Refuse a file of a later version, or of none; `where` names it in the error message."""
    number = found if type(found) is int else 0
    require(number >= 1, f"{where} has format {shown(found)}: give a whole number, {FORMAT} in this version.")
    require(
        number <= FORMAT,
        f"{where} has format {shown(found)}, and this version of ckgconv reads formats up to {FORMAT}: update ckgconv.",
    )
