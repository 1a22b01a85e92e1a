"""Write hashes.txt: SHA-256 digests, as the package index lists them, of the files of every version in constraints.txt.

    python .ci/hashes.py [WHEEL …]     wheels that are not on the index, such as the CPU build of torch, are added

`make setup` installs exactly these files first (`pip install --require-hashes --no-deps`). Kept are the source archive
and the wheels for CPython 3.11 to 3.13 on Linux, macOS and Windows.
"""

import hashlib
import re
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import unquote

from pip._internal.models.index import PyPI

ROOT = Path(__file__).resolve().parents[1]
FILE = re.compile(r"<a [^>]*href=\"[^\"]*/([^\"/#]+)#sha256=([0-9a-f]{64})\"")
USABLE = re.compile(r"(\.tar\.gz|-(py3|py2\.py3|cp31[123]|cp3[0-9]+-abi3)-.*\.whl)$")
# Free-threaded builds, other processors, and C libraries that no tested platform has.
OTHERS = re.compile(
    r"(cp31[123]t|musllinux|i686|ppc64|s390x|armv7l|riscv|win32|win_arm64|loongarch|pyodide|graalpy|pp3)"
)
MARKERS = {"triton": "; sys_platform == 'linux'"}


def pins() -> list[tuple[str, str]]:
    """Names and versions of constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [(name, version) for name, version in re.findall(r"(?m)^([\w.-]+)==([\w.+]+)", "\n".join(lines))]


def digests(pin: tuple[str, str]) -> list[str]:
    """Of the usable files of one version."""
    name, version = pin
    place = f"{PyPI.simple_url}/{re.sub(r'[-_.]+', '-', name).lower()}/"
    with urllib.request.urlopen(place, timeout=60) as answer:
        files = [(unquote(file), digest) for file, digest in FILE.findall(answer.read().decode())]
    stem = re.compile(rf"^{re.sub(r'[-_.]+', '[-_.]+', name)}-{re.escape(version)}(-|\.tar\.gz$)", re.IGNORECASE)
    named = [(file, digest) for file, digest in files if stem.match(file)]
    found = {digest for file, digest in named if USABLE.search(file) and not OTHERS.search(file)}
    if not found:
        raise SystemExit(f"{name} {version}: the index lists no usable file ({len(named)} others).")
    return sorted(found)


def main(wheels: list[str]) -> None:
    known = pins()
    with ThreadPoolExecutor(8) as pool:
        found = dict(zip(known, pool.map(digests, known), strict=True))
    for wheel in map(Path, wheels):
        name, version = wheel.name.split("-")[:2]
        found[name, version.split("+")[0]].append(hashlib.sha256(wheel.read_bytes()).hexdigest())
    text = ["# Written by `python .ci/hashes.py` from constraints.txt; not edited by hand."]
    for (name, version), values in found.items():
        text.append(
            " \\\n    ".join([f"{name}=={version}{MARKERS.get(name, '')}", *(f"--hash=sha256:{v}" for v in values)])
        )
    (ROOT / "hashes.txt").write_text("\n".join(text) + "\n")
    print(f"{len(found)} versions, {sum(map(len, found.values()))} digests: hashes.txt")


if __name__ == "__main__":
    main(sys.argv[1:])
