"""Every block of code on the pages is executed, so that no page shows code that does not work.

A page is one session in an empty folder: its blocks run in order and share names and files.

    ```python            executed in the namespace of the page
    ```LANG title="F"    written to the file F
    ```bash              line by line: `ckgconv …` runs in this process, on the CPU, with the settings of `SHORTENED`;
                         a line that names a GPU is only parsed; other commands are checked as `CHECKS` says
"""

import gc
import importlib
import itertools
import json
import re
import shlex
import shutil
import sys
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import typer

from ckgconv.cli import app, main, repeat_options
from ckgconv.pe import PseudoCoordinate
from ckgconv.registry import Registry

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")])
BLOCK = re.compile(r"^( *)```(\w+)?([^\n]*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
LANGUAGES = {"python", "bash", "toml", "csv", "json"}
# Values that only the command line of a GPU has.
ON_A_GPU = ({"--device", "cuda"}, {"--precision", "bf16"}, {"--precision", "tf32"})
SMALL = "--set model.width=8 model.blocks=2 model.steps=3 data.limit=8 training.epochs=1 training.warmup_epochs=0"
# Rows of examples/logp.csv that pages see: reading all of them needs seconds.
MOLECULES = 60
# Arguments appended to long commands, by how the command begins. The longest match counts.
SHORTENED = {
    "ckgconv train": f"{SMALL} --device cpu --no-report",
    "ckgconv train examples/logp.csv --target logp --ensemble-size": f"{SMALL} --device cpu --at-once 1",
    "ckgconv train large-sbm": "--set training.epochs=1 training.warmup_epochs=0 --device cpu",
    "ckgconv train zinc-gin": "--set model.width=8 model.layers=1 data.limit=8 training.epochs=1 --device cpu",
    "ckgconv train runs": "--device cpu",
    "ckgconv bench": f"{SMALL} training.batch_size=4 --steps 1 --device cpu",
    "ckgconv study nodes": "--seeds 0 --epochs 1 --device cpu",
    "ckgconv study oversmoothing": "--seeds 0 --epochs 2",
    "ckgconv train examples/logp.csv --target logp --init": None,  # of a network that is larger than those of tests
    "ckgconv pretrain": None,  # of a file that the reader has
    "ckgconv export": "--format onnx",
    "ckgconv serve": None,  # parsed: it runs until it is interrupted
    "ckgconv search": None,  # parsed: thirty trials
    "ckgconv search examples/logp.csv --target logp --space": f"--trials 1 {SMALL} --device cpu",
    "ckgconv search status runs/searches/small": "",
    "ckgconv data describe": None,  # of the same file
    "ckgconv data build": None,  # parsed: it draws 26,000 graphs, or downloads
    "python examples/own_loop.py": "--epochs 1 --limit 8 --width 8 --blocks 2",
}


@dataclass
class Block:
    """A fenced block of a page."""

    language: str
    title: str | None
    text: str
    line: int


def blocks(page: Path) -> list[Block]:
    """In order; snippets of other files are put in where the page names them."""
    text = page.read_text(encoding="utf-8")
    found = []
    for match in BLOCK.finditer(text):
        indent, language, rest, body = match.groups()
        body = "\n".join(line.removeprefix(indent) for line in body.splitlines()) + "\n"
        body = re.sub(r'^--8<-- "(.+)"$', lambda name: (ROOT / name[1]).read_text(), body, flags=re.MULTILINE)
        title = re.search(r'title="([^"]+)"', rest)
        found.append(Block(language or "", title and title[1], body, text.count("\n", 0, match.start()) + 1))
    return found


def commands(block: Block) -> list[str]:
    """Lines of a shell block, continued ones joined, without comments."""
    joined = re.sub(r"\\\n\s*", " ", block.text)
    return [shlex.join(words) for line in joined.splitlines() if (words := shlex.split(line, comments=True))]


class Session:
    """Runs the blocks of one page in the current folder."""

    def __init__(self, monkeypatch, capsys):
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        self.names = {"__name__": "__page__"}

    def run(self, page: Path, block: Block) -> None:
        if block.title is not None:
            path = Path(block.title)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "python":
            # Padded with empty lines, so that a traceback names the line of the page.
            exec(compile("\n" * block.line + block.text, str(page), "exec"), self.names)
        elif block.language == "bash":
            for command in commands(block):
                self.shell(command)

    def shell(self, command: str) -> None:
        program, *arguments = shlex.split(command)
        if program == "ckgconv":
            extra = shortened(command)
            if extra is None or on_a_gpu(arguments):
                parse(arguments)
            else:
                self.ckgconv([*arguments, *shlex.split(extra)])
        else:
            CHECKS[program](self, arguments)

    def ckgconv(self, arguments: list[str]) -> None:
        self.monkeypatch.setattr(sys, "argv", ["ckgconv", *arguments])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code
        assert not code, f"ckgconv {shlex.join(arguments)}: {self.capsys.readouterr().err}"

    def pip(self, arguments: list[str]) -> None:
        """Extras must exist; a package that the page has written is put where Python finds it."""
        assert arguments[0] == "install"
        for target in arguments[1:]:
            if target.startswith("."):
                for extra in re.findall(r"\[(.*)\]", target):
                    assert set(extra.split(",")) <= set(project(ROOT)["optional-dependencies"])
            if target.startswith("./"):
                install(Path(target), self.monkeypatch)

    def make(self, arguments: list[str]) -> None:
        targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE)
        assert set(arguments) <= set(targets)

    def python(self, arguments: list[str]) -> None:
        script, *options = arguments
        path = ROOT / script
        text = path.read_text(encoding="utf-8")
        for option in options:
            assert not option.startswith("--") or f'"{option}"' in text, f"{script} has no option {option}"
        extra = next((more for begin, more in SHORTENED.items() if f"python {script}".startswith(begin)), None)
        if extra is not None and not on_a_gpu(options):
            module = importlib.util.spec_from_file_location(path.stem, path)
            loaded = importlib.util.module_from_spec(module)
            module.loader.exec_module(loaded)
            loaded.main([*options, *shlex.split(extra)])

    def curl(self, arguments: list[str]) -> None:
        """The address must be one of the server's, and a body JSON."""
        source = "".join(path.read_text() for path in (ROOT / "src" / "ckgconv" / "serve").glob("*.py"))
        known = re.findall(r'"(/api/[\w-]+)"', source)
        assert urlsplit(next(each for each in arguments if each.startswith("http"))).path in known
        for option, value in itertools.pairwise(arguments):
            assert option != "-d" or json.loads(value)

    def torchrun(self, arguments: list[str]) -> None:
        place = arguments.index("ckgconv")
        assert arguments[place - 1] == "-m"
        parse(arguments[place + 1 :])


CHECKS = {
    "curl": Session.curl,
    "pip": Session.pip,
    "make": Session.make,
    "python": Session.python,
    "torchrun": Session.torchrun,
}


def shortened(command: str) -> str | None:
    """What to append to a command; None: it is only parsed."""
    fitting = [begin for begin in SHORTENED if command.startswith(begin)]
    return SHORTENED[max(fitting, key=len)] if fitting else ""


def on_a_gpu(arguments: list[str]) -> bool:
    return any(names <= set(arguments) for names in ON_A_GPU)


def parse(arguments: list[str]) -> None:
    """Parse a command line without running it."""
    command, rest = typer.main.get_command(app), repeat_options(arguments)
    while hasattr(command, "commands"):
        name, *rest = rest
        assert name in command.commands, f"ckgconv has no command {name}"
        command = command.commands[name]
    command.make_context(command.name, rest)


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


def install(folder: Path, monkeypatch) -> None:
    """What `pip install` does to a pure package: its source on the path, its metadata next to it."""
    described = project(folder)
    metadata = folder / "src" / f"{described['name'].replace('-', '_')}-{described['version']}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {described['name']}\nVersion: {described['version']}\n")
    groups = (
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in described["entry-points"].items()
    )
    (metadata / "entry_points.txt").write_text("\n\n".join(groups) + "\n")
    monkeypatch.syspath_prepend(folder.absolute() / "src")


@pytest.fixture
def session(tmp_path, monkeypatch, capsys):
    """An empty folder with the files of the checkout that pages read, and registries that forget what a page adds."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    table = tmp_path / "examples" / "logp.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:MOLECULES]))
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "zinc").symlink_to(ROOT / "results" / "zinc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CKGCONV_DATA", str(tmp_path / "data"))
    for registry in [each for each in gc.get_objects() if type(each) is Registry]:
        monkeypatch.setattr(registry, "_entries", dict(registry._entries))
    return Session(monkeypatch, capsys)


def test_there_are_pages():
    assert {"README.md", "index.md", "extend.md", "own-loop.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_every_block_of_the_page_works(page, session):
    found = blocks(page)
    unknown = [(block.line, block.language) for block in found if block.language not in LANGUAGES]
    assert not unknown, f"{page.name}: blocks that nothing executes"
    for block in found:
        assert block.language in ("python", "bash") or block.title, (
            f"{page.name}:{block.line} is neither run nor written"
        )
        session.run(page, block)


@pytest.mark.parametrize(
    "command",
    [
        "ckgconv train zinc --device cuda --nonsense 1",
        "ckgconv bench --precision bf16",
        "ckgconv nonsense --device cuda",
        "make nonsense",
        "pip install .[nonsense]",
        "python benchmarks/passes.py --nonsense",
        "nonsense",
    ],
)
def test_commands_that_do_not_exist_are_found(command, session):
    with pytest.raises(Exception):  # noqa: B017, PT011, of the parser, of a check, or of a look-up
        session.shell(command)


def test_registries_are_where_the_page_says():
    rows = re.findall(
        r"^\| [\w -]+ \| `([^`]+)` \| `(\w+)` \| `src/([^`]+)` \| `([\w.]+)` \|$",
        (ROOT / "docs" / "extend.md").read_text(encoding="utf-8"),
        flags=re.MULTILINE,
    )
    assert len(rows) == 7
    for file, name, place, group in rows:
        assert (ROOT / file).parent.is_dir()
        module = place.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
        registry = getattr(importlib.import_module(module), name)
        assert isinstance(registry, Registry)
        assert registry.group == group


def test_source_files_named_on_pages_exist():
    named = re.compile(r"`(?:src/ckgconv/)?((?:nn|ops|pe|pairs|data|tasks|recipes|backends|engine)/[\w/]+\.py)`")
    found = {(page.name, file) for page in PAGES for file in named.findall(page.read_text(encoding="utf-8"))}
    assert len(found) > 20
    package = ROOT / "src" / "ckgconv"
    assert not [each for each in found if not each[1].endswith("/NAME.py") and not (package / each[1]).exists()]


def test_the_page_explains_every_field_of_a_coordinate():
    text = (ROOT / "docs" / "extend.md").read_text(encoding="utf-8")
    assert not [each.name for each in fields(PseudoCoordinate) if not re.search(rf"\b{each.name}\b", text)]


def test_the_package_of_the_page_has_types(session, cache):
    """Under mypy --strict; PyG has no annotations. The cache is kept, since reading torch takes most of the time."""
    api = pytest.importorskip("mypy.api")
    page = ROOT / "docs" / "extend.md"
    for block in blocks(page):
        if block.title is not None:
            session.run(page, block)
    session.monkeypatch.setenv("MYPYPATH", f"{ROOT / 'src'}:ckgconv-extras/src")
    lenient = ["--follow-imports=silent", "--disable-error-code=import-untyped"]
    found, problems, code = api.run(
        ["--strict", *lenient, f"--cache-dir={cache.mkdir('mypy')}", "ckgconv-extras/src/ckgconv_extras"]
    )
    assert code == 0, found + problems


def test_rooms_have_the_order_of_the_page():
    from test_layout import LINE

    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\d+\. `(\w+)`", page, flags=re.MULTILINE)) == LINE


def test_readme_is_short():
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 120


def test_links_lead_somewhere():
    pages = [*PAGES, *ROOT.glob("results/**/README.md"), ROOT / "benchmarks" / "RECORDS.md"]
    for page in pages:
        for link in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            assert link.startswith("http") or (page.parent / link).exists(), f"{page.name}: {link}"
