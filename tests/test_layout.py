"""The straight line: each room imports only what comes before it."""

import ast
from pathlib import Path

import pytest

import ckgconv

ROOT = Path(ckgconv.__file__).parent
# Each room imports only rooms to its left. Recipes are plain data, so that networks may read them; those with names
# come behind the networks, whose kinds they name.
LINE = (
    *("checks", "registry", "files", "graphs", "recipe", "ops", "pe", "pairs", "nn", "recipes", "data", "tasks"),
    *("backends", "engine", "theory", "studies", "cli"),
)
# `CKGCN.from_recipe("zinc")` looks its name up when it is called.
EXCEPTIONS = {("nn", "ckgconv.recipes")}


def imported(path: Path) -> set[str]:
    """Names after `ckgconv.` in the file's import statements."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ckgconv":
            names.add(node.module)
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "ckgconv"}
    return names


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_follow_the_line(path):
    room = room_of(path)
    if room in ("__init__", "__main__"):
        return
    for module in imported(path):
        other = module.split(".")[1]
        allowed = LINE.index(other) <= LINE.index(room) or (room, module) in EXCEPTIONS
        assert allowed, f"{room} may not import {module}"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_says_what_it_is_and_stays_small(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 400
