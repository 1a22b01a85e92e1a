"""Use the built package as its users would: `python .ci/check_package.py DIST PYTHON`, PYTHON of a clean environment.

The commands run in an empty folder outside the checkout, so nothing of the source tree is found by accident.
"""

import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

# A user's file, whose types `mypy --strict` must see through py.typed.
TYPED = """\
from ckgconv import CKGConv, recipe, train

conv: CKGConv = CKGConv(16, 32, pe="rrwp", steps=8, support="global")
run = train(recipe("zinc-demo"), seed=0)
reveal_type(run.record.seed)
"""
NEEDED = (
    "ckgconv/py.typed",
    "ckgconv/data/zinc12k.npz",
    "ckgconv/trained/zinc/best.safetensors",
    "ckgconv/trained/zinc-grit/best.safetensors",
    "ckgconv/campaigns/",
    "ckgconv/serve/page/index.html",
    "ckgconv/serve/page/openchemlib/openchemlib.js",
    "ckgconv/trained/zinc250k-descriptors/best.safetensors",
)


def check(condition: bool, sentence: str) -> None:
    if not condition:
        raise SystemExit(sentence)


def run(*command: str | Path, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    check(
        done.returncode == 0, f"{' '.join(map(str, command))} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
    )
    return done.stdout


def check_archives(dist: Path) -> None:
    """Everything needed is inside, and nothing of a checkout beyond it."""
    (wheel,), (source,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    inside = zipfile.ZipFile(wheel).namelist()
    for name in NEEDED:
        check(any(each.startswith(name) for each in inside), f"{wheel.name} lacks {name}.")
    strange = [each for each in inside if not each.startswith(("ckgconv/", "ckgconv-"))]
    check(not strange, f"{wheel.name} holds {strange[:3]}.")
    with tarfile.open(source) as archive:
        names = archive.getnames()
    check(any(name.endswith("src/ckgconv/py.typed") for name in names), f"{source.name} lacks py.typed.")


def main(dist: Path, python: Path) -> None:
    check_archives(dist)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        print(run(python, "-I", "-m", "ckgconv", "--help", folder=folder).splitlines()[1].strip())
        place = run(python, "-I", "-c", "import ckgconv; print(ckgconv.__file__)", folder=folder)
        check("site-packages" in place, f"ckgconv was imported from {place}.")
        (folder / "two.csv").write_text("smiles\nCCO\nc1ccccc1\n")
        run(python, "-I", "-m", "ckgconv", "predict", "zinc", "two.csv", "-o", "out.csv", folder=folder)
        check(len((folder / "out.csv").read_text().splitlines()) == 3, "predict wrote another number of rows.")
        (folder / "user.py").write_text(TYPED)
        found = run(sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "user.py", folder=folder)
        check(
            'Revealed type is "builtins.int"' in found or 'Revealed type is "int"' in found,
            f"py.typed is not read:\n{found}",
        )
    print(f"{', '.join(sorted(path.name for path in dist.iterdir()))}: installed and used from outside the checkout")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute())
