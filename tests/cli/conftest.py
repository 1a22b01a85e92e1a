"""Fixtures: the command line, run in an empty folder."""

import sys

import pytest

from ckgconv.cli import main


@pytest.fixture(autouse=True)
def _in_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def with_reports():
    """Asked for by tests that need the reports of trained tables."""


@pytest.fixture(autouse=True)
def _without_reports(request, monkeypatch):
    """A report takes as long as the training of a small table."""
    if "with_reports" not in request.fixturenames:
        monkeypatch.setattr("ckgconv.cli.report_options.write_report", lambda run: run.folder / "report.html")


@pytest.fixture
def ckgconv(monkeypatch, capsys):
    """Runs the command line; returns exit code, standard output and standard error."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ckgconv", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
