"""Printing: words as they are, without markup, and with control characters spelled out.

A table's header or a file's name may contain anything, such as a sequence that moves the cursor.
"""

from typing import Any

from rich.console import Console


def plain(text: str) -> str:
    """The text with every character that does not print, but for ends of lines, as Python writes it."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(each if each.isprintable() or each == "\n" else _spelled(each) for each in text)


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


class PlainConsole(Console):
    """A console that prints words as they are; tables and styles stay rich's."""

    def print(self, *objects: Any, **options: Any) -> None:
        super().print(*(plain(each) if isinstance(each, str) else each for each in objects), **options)


def console(**options: Any) -> Console:
    """The console of a command."""
    return PlainConsole(markup=False, emoji=False, **options)
