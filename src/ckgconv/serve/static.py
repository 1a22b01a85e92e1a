"""The files of the page: a fixed list, read into memory once. No address names a file of the disk."""

from dataclasses import dataclass
from pathlib import Path

from ckgconv.files import digest

FOLDER = Path(__file__).parent / "page"
# Address → file, type.
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/editor.js": ("editor.js", "text/javascript; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    "/api/docs": ("docs.html", "text/html; charset=utf-8"),
    "/docs.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/openchemlib.js": ("openchemlib/openchemlib.js", "text/javascript; charset=utf-8"),
    "/openchemlib-licence.txt": ("openchemlib/LICENSE", "text/plain; charset=utf-8"),
}


@dataclass(frozen=True)
class StaticFile:
    """A file of the page, and a tag by which a browser knows whether its copy is the same."""

    content: bytes
    kind: str
    tag: str


def static_files() -> dict[str, StaticFile]:
    """All files of the page, by address."""
    found = {}
    for address, (name, kind) in FILES.items():
        content = (FOLDER / name).read_bytes()
        found[address] = StaticFile(content, kind, f'"{digest(content)[:32]}"')
    return found
