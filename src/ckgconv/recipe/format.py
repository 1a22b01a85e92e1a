"""The format of all files of a run, a whole number that changes where keys get another meaning.

A file that does not name its format has the first one. Files of a later format are refused, earlier ones are read.
"""

from ckgconv.checks import require
from ckgconv.recipe.values import shown

FORMAT = 1


def check_format(found: object, where: str) -> None:
    """Refuse a file of a later version; `where` names it in the error message."""
    require(
        type(found) is int and 1 <= found <= FORMAT,
        f"{where} has format {shown(found)}, and this version of ckgconv reads formats up to {FORMAT}: update ckgconv.",
    )
