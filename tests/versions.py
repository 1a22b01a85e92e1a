"""`make versions`: the tests of the core under several versions of Python and torch, each in an environment of its own.

Constraints hold but for torch, and for what each torch asks for in versions of its own. Environments are kept under
`.versions`, so that a second round only runs the tests.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# What differs between versions: operators, autograd, export, files, the command line. Triton's interpreter is left out.
CORE = (
    "test_golden.py",
    "test_golden_grit.py",
    "test_graphs.py",
    "test_files.py",
    "nn",
    "pe",
    "pairs",
    "tasks",
    "data",
    "cli/test_commands.py",
)


def environment(python: str, torch: str) -> Path:
    """The Python of an environment with this torch, made where it does not exist."""
    folder = ROOT / ".versions" / f"{Path(python).name}-{torch}"
    if not (folder / "installed").exists():
        subprocess.run([python, "-m", "venv", "--clear", folder], check=True)
        pins = re.sub(r"(?m)^(torch|triton|setuptools)==.*\n", "", (ROOT / "constraints.txt").read_text())
        constraints = folder / "constraints.txt"
        constraints.write_text(f"{pins}torch=={torch}\n")
        pip = [folder / "bin" / "python", "-m", "pip", "install", "--quiet", "-c", constraints]
        subprocess.run([*pip, "--upgrade", "pip"], check=True)
        subprocess.run([*pip, "-e", f"{ROOT}[molecules]", *_test_tools()], check=True)
        (folder / "installed").touch()
    return folder / "bin" / "python"


def _test_tools() -> list[str]:
    return [
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "networkx",
        "pyarrow",
        "onnx",
        "onnxscript",
        "onnxruntime",
        "optuna",
    ]


def outcome(python: Path) -> dict[str, object]:
    """Versions, and the last line of the tests."""
    say = "import sys, torch; print(sys.version.split()[0], torch.__version__)"
    versions = subprocess.run([python, "-c", say], check=True, capture_output=True, text=True).stdout.split()
    tests = [str(ROOT / "tests" / each) for each in CORE]
    command = [python, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *tests]
    found = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    lines = found.stdout.strip().splitlines()
    print("\n".join(lines[-15:]), found.stderr[-2000:], file=sys.stderr, flush=True)
    return {"python": versions[0], "torch": versions[1], "code": found.returncode, "tests": lines[-1] if lines else ""}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", nargs="+", metavar="PYTHON=TORCH", help="such as python3.13=2.13.0")
    found = [outcome(environment(*pair.split("=", 1))) for pair in parser.parse_args().pairs]
    print(json.dumps(found, indent=1))
    sys.exit(any(each["code"] for each in found))


if __name__ == "__main__":
    main()
