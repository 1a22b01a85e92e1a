"""Bounds of values in the annotations of fields, as pydantic checks them: `Annotated[int, Field(ge=1)]`."""

from typing import Annotated

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

LONGEST_NAME = 240
LARGEST_SEED = 2**31 - 1


def _is_name(text: str) -> str:
    """Refuse a text that cannot be the name of a folder, or be printed: no separator, no control character."""
    usable = text.isprintable() and not any(mark in text for mark in "/\\")
    if not (usable and 0 < len(text) <= LONGEST_NAME and text[0] not in ". -" and text[-1] != " "):
        wanted = f"a name of at most {LONGEST_NAME} characters, without '/' and not beginning with '.' or '-'"
        raise PydanticCustomError("name", "{wanted}", {"wanted": wanted})
    return text


def usable_name(text: str, other: str) -> str:
    """A name as near to a text as `Name` admits; `other` where nothing of it is left."""
    plain = "".join(each if each.isprintable() and each not in "/\\" else "_" for each in text)
    return plain.lstrip(". -")[:LONGEST_NAME].rstrip() or other


# The upper bounds are far beyond any use. They keep a slip of the keyboard from building layers for hours; what fits
# into memory is asked before a network is built.
Name = Annotated[str, AfterValidator(_is_name)]
Count = Annotated[int, Field(ge=1, le=10**9)]
Whole = Annotated[int, Field(ge=0, le=10**9)]
Width = Annotated[int, Field(ge=1, le=2**16)]
Depth = Annotated[int, Field(ge=1, le=1000)]
Channels = Annotated[int, Field(ge=0, le=2**16)]
Steps = Annotated[int, Field(ge=0, le=10_000)]
Positive = Annotated[float, Field(gt=0)]
Factor = Annotated[float, Field(ge=-1e18, le=1e18)]  # of tensors, whose float32 ends at 3e38
Seed = Annotated[int, Field(ge=0, le=LARGEST_SEED)]
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, lt=1)]  # a probability of dropout, or a decay
