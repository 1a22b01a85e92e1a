"""The multi-process service of a GPU, with a program in its place."""

import pytest

from ckgconv.campaigns import service
from ckgconv.campaigns.service import shared_gpu


@pytest.fixture
def control(tmp_path, monkeypatch):
    """Puts a program of that name on the path, which notes how it is called and ends with a code."""

    def make(code: int, works: bool = True):
        program = tmp_path / service.CONTROL
        notes = tmp_path / "calls"
        program.write_text(f'#!/bin/sh\necho "$@" >> {notes}\n[ "$1" = -d ] || cat >> {notes}\nexit {code}\n')
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
        monkeypatch.setattr(service, "PROBE", "pass" if works else "raise SystemExit(1)")
        return notes

    monkeypatch.setattr(service.torch.cuda, "is_available", lambda: True)
    return make


def said(device: str = "auto", at_once: int = 2) -> str:
    lines = []
    with shared_gpu(device, at_once, lines.append):
        pass
    return " ".join(lines)


def test_the_service_is_started_and_ended(control):
    calls = control(0)
    assert said() == "Started the CUDA multi-process service: runs share the GPU."
    assert calls.read_text().split() == ["-d", "quit"]


def test_a_service_that_does_not_work_is_ended_at_once(control):
    calls = control(0, works=False)
    assert "does not work here and was ended again" in said()
    assert calls.read_text().split() == ["-d", "quit"]


def test_a_service_that_runs_already_is_left_alone(control):
    calls = control(1)
    assert "runs already" in said()
    assert calls.read_text().split() == ["-d"]


def test_without_a_gpu_or_with_one_run_there_is_nothing_to_share(control, monkeypatch):
    calls = control(0)
    assert said("cpu") == said("cuda", at_once=1) == ""
    assert not calls.exists()
    monkeypatch.setenv("PATH", "")
    assert said() == "nvidia-cuda-mps-control is not installed: runs take turns on the GPU."
