"""Numbers as spreadsheets write them: whether the decimals of a column follow a comma or a point.

    1,5  3  -2,7e-3     decimal commas: read as 1.5, 3 and -0.0027
    1,5  2.5            both: refused
    1,250  3,600        thousands or decimals, which nothing tells apart: refused

One cell that can only be a decimal comma decides for its column, so that 1,250 beside 1,5 is 1.25.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ckgconv.checks import require

DECIMAL_COMMA = re.compile(r"[+-]?(\d+,\d*|,\d+)([eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(,\d{3})+")
# Digits with marks between them, in any order: a number in some other notation, not the name of a class.
NUMBER_LIKE = re.compile(r"[+-]?[\d.,'\u2019\u00a0\u202f ]*\d[\d.,'\u2019\u00a0\u202f ]*([eE][+-]?\d+)?")


@dataclass(frozen=True)
class Marks:
    """The first number found in each notation, "" where there is none."""

    comma: str = ""  # 1,5
    point: str = ""  # 1.5
    thousands: str = ""  # 1,250, which may be 1.25 or 1250


def marks(cells: Iterable[str]) -> Marks:
    """The notations of the numbers in cells; cells without a number are skipped."""
    comma = point = thousands = ""
    for cell in cells:
        text = cell.strip()
        if "," in text:
            if THOUSANDS.fullmatch(text):
                thousands = thousands or text
            elif DECIMAL_COMMA.fullmatch(text):
                comma = comma or text
        elif not point and "." in text and is_number(text):
            point = text
    return Marks(comma, point, thousands)


def has_decimal_commas(cells: Iterable[str], where: str) -> bool:
    """Whether the decimals of these cells follow a comma; refused where that cannot be told.

    `where` begins the sentence of a refusal: "Column 'y' of t.csv".
    """
    found = marks(cells)
    require(
        not (found.comma and found.point),
        f"{where} has numbers with a decimal comma ({found.comma}) and with a point ({found.point}): write all of them "
        f"with a point.",
    )
    require(
        bool(found.comma) or not found.thousands,
        f"{where} has {found.thousands}, in which the comma may separate thousands or decimals: write numbers with a "
        f"decimal point, and thousands without a mark.",
    )
    return bool(found.comma)


def parsed(text: str, commas: bool = False) -> float:
    """The number in a cell; raises ValueError where there is none."""
    return float(text.replace(",", ".") if commas else text)


def is_number(text: str) -> bool:
    """Whether a cell is a number with a decimal point or without decimals."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def looks_like_a_number(text: str) -> bool:
    """Whether a cell is a number in any notation, and so not the name of a class."""
    return is_number(text) or NUMBER_LIKE.fullmatch(text.strip()) is not None
