"""Pins, digests and the commit in a record agree with what they stand for."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from ckgconv.engine import machine

ROOT = Path(__file__).resolve().parents[1]
PIN = re.compile(r"(?m)^([\w.-]+==[\w.+]+)")


def test_every_pin_has_digests():
    pins = set(PIN.findall((ROOT / "constraints.txt").read_text()))
    hashed = {}
    for entry in (ROOT / "hashes.txt").read_text().replace("\\\n", " ").splitlines()[1:]:
        hashed[PIN.match(entry)[1]] = re.findall(r"--hash=sha256:([0-9a-f]{64})", entry)
    assert set(hashed) == pins, "run `python .ci/hashes.py` after a change of constraints.txt"
    assert all(hashed.values())


def test_every_direct_dependency_is_pinned_with_a_reason():
    text = (ROOT / "constraints.txt").read_text().split("\n\n")[0]
    reasons = {re.sub(r"[-_.]+", "-", name).lower() for name in re.findall(r"(?m)^([\w.-]+)==\S+  # \w", text)}
    declared = re.findall(
        r'"([A-Za-z][\w.-]*)(?:\[[^\]]*\])?[^"]*"', (ROOT / "pyproject.toml").read_text().split("[project.scripts]")[0]
    )
    named = {re.sub(r"[-_.]+", "-", name).lower() for name in declared[declared.index("torch") :]} - {"ckgconv"}
    assert named <= reasons, named - reasons


def test_an_installed_package_does_not_take_the_commit_of_the_project_around_it(tmp_path, monkeypatch):
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    (tmp_path / "site-packages").mkdir()
    copy = tmp_path / "site-packages" / "machine.py"
    shutil.copy(machine.__file__, copy)
    (tmp_path / "own.txt").write_text("a project of the user's")
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "own.txt"), (*identity, "commit", "-q", "-m", "own")):
        subprocess.run(["git", *words], cwd=tmp_path, check=True)
    monkeypatch.setattr(machine, "__file__", str(copy))
    assert machine.commit() is None
    subprocess.run(["git", "add", "site-packages"], cwd=tmp_path, check=True)
    assert machine.commit().endswith("-dirty")
