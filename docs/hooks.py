"""Adds one page of API reference for each package of the source tree, in the order of docs/architecture.md.

The pages are made while the site is built, so that a new module appears without an edit here.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "ckgconv"


def rooms() -> dict[str, str]:
    """Name → what it holds, from the numbered list of the page."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^\d+\. `(\w+)`: (.+?)\.?$", page, flags=re.MULTILINE))


def modules(room: str) -> list[str]:
    """The public modules of a room that exist, with their dotted names."""
    if (SOURCE / f"{room}.py").exists():
        return [f"ckgconv.{room}"]
    paths = sorted((SOURCE / room).rglob("*.py"))
    names = [".".join(path.relative_to(SOURCE.parent).with_suffix("").parts) for path in paths]
    return [name.removesuffix(".__init__") for name in names]


def text(room: str, says: str) -> str:
    """A page: every module of the room."""
    # What a package exports is described where it is defined.
    entries = [
        f"::: {name}\n    options: {{members: false}}" if is_package(name) else f"::: {name}" for name in modules(room)
    ]
    return f"# ckgconv.{room}\n\n{says[0].upper()}{says[1:]}.\n\n" + "\n\n".join(entries) + "\n"


def is_package(name: str) -> bool:
    """Whether the name is that of a package, not of a module."""
    return (SOURCE.parent / Path(*name.split("."))).is_dir()


def on_config(config: Any) -> Any:
    """Enter the pages into the navigation."""
    pages = [{room: f"api/{room}.md"} for room in rooms()]
    config.nav = [*config.nav, {"API": pages}]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    for room, says in rooms().items():
        files.append(File.generated(config, f"api/{room}.md", content=text(room, says)))
    return files
