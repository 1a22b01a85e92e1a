"""The browser of the tests runs scripts, and tells what went wrong on a page."""

import pytest
from browser import executable, photograph, visit


def test_scripts_run_and_complaints_are_seen(tmp_path):
    page = tmp_path / "page.html"
    page.write_text("<p id=a>before</p><script>a.textContent = 'after'; missing()</script>")
    seen = visit(page.as_uri(), tmp_path)
    assert ">after<" in seen.document
    assert any("missing is not defined" in line for line in seen.complaints)
    photograph(page.as_uri(), tmp_path / "page.png", tmp_path, 200, 100)
    assert (tmp_path / "page.png").read_bytes()[:4] == b"\x89PNG"


def test_a_missing_browser_fails_in_ci_alone(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="make browser"):
        executable()
    monkeypatch.setenv("CI", "1")
    with pytest.raises(pytest.fail.Exception, match="make browser"):
        executable()
