"""The house: each room imports only what comes before it, files and functions stay small, every module has a test."""

import ast
import re
from pathlib import Path

import pytest

import ckgconv

ROOT = Path(ckgconv.__file__).parent
TESTS = Path(__file__).parent
# Each room imports only rooms to its left. Recipes are plain data, so networks may read them; named recipes come after
# the networks, whose kinds they name.
LINE = (
    *("checks", "registry", "files", "graphs", "recipe", "ops", "pe", "pairs", "nn", "recipes", "data", "tasks"),
    *("backends", "engine", "uncertainty", "explanation", "report", "estimators", "exporting", "searching"),
    *("theory", "studies", "campaigns", "serve", "cli"),
)
EXCEPTIONS = {("nn/graph_model.py", "ckgconv.recipes")}  # `CKGCN.from_recipe("zinc")` resolves the name when called
MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 350, 60, 8
FILES = sorted(ROOT.rglob("*.py"))
every_file = pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))


def imported(path: Path) -> set[str]:
    """Modules of this package in the file's import statements."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "ckgconv":
            names.add(node.module)
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names if alias.name.split(".")[0] == "ckgconv"}
    return names


def room_of(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@every_file
def test_imports_follow_the_line(path):
    room, name = room_of(path), str(path.relative_to(ROOT))
    if room in ("__init__", "__main__"):
        return
    for module in imported(path):
        other = module.split(".")[1]
        allowed = LINE.index(other) <= LINE.index(room) or (name, module) in EXCEPTIONS
        assert allowed, f"{name} may not import {module}"


@every_file
def test_every_file_says_what_it_is_and_stays_small(path):
    text = path.read_text()
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) <= MOST_LINES


def is_exempt(function: ast.FunctionDef, path: Path) -> bool:
    """Triton kernels take what they read; a Typer command and an estimator are declared by their parameters."""
    compiled = any("triton.jit" in ast.unparse(decorator) for decorator in function.decorator_list)
    compiled = compiled or (room_of(path) == "estimators" and function.name == "__init__")
    return compiled or (room_of(path) == "cli" and "typer.Option" in ast.unparse(function.args))


@every_file
def test_functions_stay_small(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if not isinstance(node, ast.FunctionDef) or is_exempt(node, path):
            continue
        parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
        own = [name for name in parameters if name not in ("self", "cls", "ctx")]
        assert len(own) <= MOST_PARAMETERS, f"{node.name} has {len(own)} parameters"
        assert node.end_lineno - node.lineno < MOST_FUNCTION_LINES, f"{node.name} is too long"


def test_models_know_nothing_of_devices():
    words = re.compile(r"fused|beside|is_cuda|device\.type|triton")
    found = [
        f"{path.name}:{number}: {line}"
        for path in sorted((ROOT / "nn").glob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if words.search(line)
    ]
    assert not found, "\n".join(found)


def test_the_loop_names_no_model():
    """What trains, predicts and prints works with any `GraphModel`."""
    rooms = ("data", "tasks", "engine", "cli", "pairs", "pe", "ops")
    naming = [path for path in FILES if room_of(path) in rooms and "CKGCN" in path.read_text()]
    assert not naming


def modules() -> list[Path]:
    """All modules with code of their own."""
    return [path for path in FILES if path.name not in ("__init__.py", "__main__.py")]


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(ROOT)))
def test_every_module_has_a_test(path):
    """One of its name, or one that imports or names it."""
    name = path.relative_to(ROOT).with_suffix("")
    tests = list(TESTS.rglob("test_*.py"))
    if any(test.stem in (f"test_{name.name}", f"test_{name.parent.name}") for test in tests):
        return
    dotted = "ckgconv." + str(name).replace("/", ".")
    parent, last = dotted.rsplit(".", 1)
    from_parent = re.compile(rf"from {re.escape(parent)} import [^\n]*\b{last}\b")
    texts = [test.read_text() for test in TESTS.rglob("*.py")]
    assert any(dotted in text or from_parent.search(text) for text in texts), f"no test names {dotted}"
