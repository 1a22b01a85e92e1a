"""The straight line: each room imports only what comes before it."""

import ast
from pathlib import Path

import pytest

import ckgconv

ROOT = Path(ckgconv.__file__).parent
LEAF = {"checks", "files"}
ROOMS = {
    "checks": set(),
    "files": {"checks"},
    "graphs": LEAF,
    "recipe": set(),
    "recipes": LEAF | {"recipe"},
    "data": LEAF | {"graphs", "recipe"},
    "ops": set(),
    "pe": LEAF | {"graphs"},
    "pairs": LEAF | {"graphs", "pe", "ops"},
    # A recipe is plain data, so the network may read one: CKGCN.from_recipe.
    "nn": LEAF | {"graphs", "pairs", "ops", "recipe", "recipes"},
    "tasks": LEAF | {"graphs", "ops"},
    "engine": LEAF | {"graphs", "recipe", "recipes", "data", "pe", "pairs", "ops", "nn", "tasks"},
    "theory": LEAF | {"graphs", "pe", "pairs", "nn"},
    "studies": LEAF | {"graphs", "recipe", "recipes", "data", "pe", "pairs", "ops", "nn", "tasks", "engine", "theory"},
}
ROOMS["cli"] = ROOMS["studies"] | {"studies"}


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
        assert other == room or other in ROOMS[room], f"{room} may not import {module}"


@pytest.mark.parametrize("path", sorted(ROOT.rglob("*.py")), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_file_says_what_it_is_and_stays_small(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= 400
