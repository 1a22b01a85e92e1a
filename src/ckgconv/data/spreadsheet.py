"""Cells of a CSV that we write: text that a spreadsheet would compute as a formula is marked as text."""

import re

# A formula in a spreadsheet begins with one of these; a number may begin with a sign too.
FORMULA = "=+-@\t\r"
# With a decimal point or comma: what we read as a number stays one that we can read again.
NUMBER = re.compile(r"[+-]?(\d+[.,]?\d*|[.,]\d+)([eE][+-]?\d+)?|[+-]?(nan|inf)")


def as_text(cell: str) -> str:
    """A cell that no spreadsheet computes: an apostrophe in front where it would be a formula; numbers stay."""
    if len(cell) < 2 or cell[0] not in FORMULA or NUMBER.fullmatch(cell):
        return cell
    return f"'{cell}"
