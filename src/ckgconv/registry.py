"""Registries: names that a recipe may use, each resolved in one dictionary that installed packages can extend.

    COORDINATES = Registry("pseudo-coordinate", "ckgconv.coordinates", {"rrwp": RRWP, …})

The entries of this package are in the dictionary. Others come from Python entry points of the registry's group: an
installed package that declares `pagerank = "mypackage:PAGERANK"` under `[project.entry-points."ckgconv.coordinates"]`
adds that name, and is imported only when it is looked up. A name of this package cannot be replaced.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from ckgconv.checks import InputError, shown

Entry = TypeVar("Entry")
# Names in an error message.
MOST_LISTED = 24


class UnknownName(InputError, KeyError):
    """No entry has that name."""

    __str__ = Exception.__str__  # KeyError prints the repr of its message


class Registry(Mapping[str, Entry], Generic[Entry]):
    """Entries by name.

    Args:
        noun: what an entry is, for error messages.
        group: the group of entry points through which other packages add entries.
        entries: the entries of this package.
        kind: what an entry is an instance of; of functions and classes, None says that it must be callable.
    """

    def __init__(self, noun: str, group: str, entries: Mapping[str, Entry], kind: type[Entry] | None = None) -> None:
        self.noun = noun
        self.group = group
        self.kind = kind
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> Entry:
        if not isinstance(name, str):
            raise UnknownName(f"There is no {self.noun} {shown(name)}: give the name of one.")
        if name not in self._entries:
            self._entries[name] = self._load(name)
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        # Entry points are read from files of all installed packages, 3 ms, so those of this package come first.
        return name in self._entries or name in self._entry_points()

    def __iter__(self) -> Iterator[str]:
        yield from self._entries
        yield from (name for name in self._entry_points() if name not in self._entries)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def sound(self) -> dict[str, Entry]:
        """All entries by name, without those of other packages that cannot be imported: for hints."""
        entries = {}
        for name in self:
            with suppress(InputError):
                entries[name] = self[name]
        return entries

    def check(self, name: str) -> None:
        """Refuse a name without an entry, or whose entry cannot be imported."""
        self[name]

    def _entry_points(self) -> dict[str, EntryPoint]:
        return {point.name: point for point in entry_points(group=self.group)}

    def _load(self, name: str) -> Entry:
        point = self._entry_points().get(name)
        if point is None:
            raise UnknownName(f"There is no {self.noun} {shown(name)}: {nearest(name, list(self))}")
        try:
            entry: Entry = point.load()
        except Exception as error:
            raise InputError(
                f"The {self.noun} {name!r} of the installed package {_owner(point)} cannot be imported ({error}): "
                f"repair or remove that package."
            ) from error
        right = callable(entry) if self.kind is None else isinstance(entry, self.kind)
        if not right:
            wanted = "something to call" if self.kind is None else f"a {self.kind.__name__}"
            raise InputError(
                f"The {self.noun} {name!r} of the installed package {_owner(point)} is a {type(entry).__name__}, not "
                f"{wanted}: repair or remove that package."
            )
        return entry


def nearest(name: str, names: list[str], prefix: str = "") -> str:
    """The end of an error message about an unknown name: the nearest of the names, or a list of them."""
    matches = get_close_matches(name, names, n=1)
    if matches:
        return f"did you mean {prefix}{matches[0]}?"
    return f"choose one of {listed([prefix + each for each in names])}."


def listed(names: list[str]) -> str:
    """Names in a sentence, the first of them where there are many."""
    others = len(names) - MOST_LISTED
    return ", ".join(names[:MOST_LISTED]) + (f" and {others:,} others" if others > 0 else "")


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
