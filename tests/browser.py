"""A page in a real headless Chromium: its document after all scripts have run, what it complained about, a picture.

    seen = visit("file:///…/report.html", tmp_path)     # or http://127.0.0.1:PORT/
    assert "…" in seen.document and not seen.complaints

`make browser` installs it. Where it is missing, tests that need it are skipped, except in CI, where they fail.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
OPTIONS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
)
SECONDS = 120
# What scripts print and what cannot be loaded: [time:INFO:CONSOLE:1] "…", source: … (1)
COMPLAINT = re.compile(r"CONSOLE[^\]]*\] (.*)")


@dataclass(frozen=True)
class Seen:
    """What a browser made of a page."""

    document: str  # as HTML, after scripts have run
    complaints: list[str]  # lines of its console, such as errors of scripts and files that could not be loaded


def executable() -> str:
    """The browser; without one the test is skipped, and in CI it fails."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("There is no Chromium: install it with 'make browser'.")
    assert found is not None
    return found


def visit(address: str, folder: Path) -> Seen:
    """Open an address; `folder` takes the browser's own files."""
    done = _run(folder, "--enable-logging=stderr", "--dump-dom", "--virtual-time-budget=5000", address)
    return Seen(done.stdout, COMPLAINT.findall(done.stderr))


def photograph(address: str, picture: Path, folder: Path, width: int = 1000, height: int = 1400) -> None:
    """Write the upper `height` pixels of a page as PNG."""
    _run(folder, f"--window-size={width},{height}", f"--screenshot={picture}", address)
    assert picture.stat().st_size > 0


def _run(folder: Path, *options: str) -> "subprocess.CompletedProcess[str]":
    own = folder / "browser"
    own.mkdir(exist_ok=True)
    command = [executable(), *OPTIONS, f"--user-data-dir={own}", *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
