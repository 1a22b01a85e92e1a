"""Whatever is handed in, the answer is a result or one sentence, within a minute and within memory.

A bounded sample of the campaign (`make hostile N=10000`), and every case that has ever failed.
"""

import os

import pytest
from hostile.campaign import ATTACKED, REGRESSIONS, SEED, attack
from hostile.doors import DOORS
from hostile.runner import Children, Outcome, is_sentence, judged

CASES = int(os.environ.get("HOSTILE_CASES", "40"))
KEPT = sorted(path for path in REGRESSIONS.glob("*/*") if path.is_file())


@pytest.fixture(scope="module")
def children():
    started = Children()
    yield started
    started.close()


@pytest.mark.parametrize("name", ATTACKED)
def test_a_sample_of_the_campaign(name, children):
    tally = attack(DOORS[name], CASES, SEED, children)
    assert tally.counts.total() >= min(CASES, 10)
    assert not list(tally.failures.values())


@pytest.mark.parametrize("path", KEPT, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_what_once_failed(path, children):
    outcome = children.run(path.parent.name, path.read_bytes())
    assert outcome.good, outcome


def test_failures_are_noticed(children, monkeypatch):
    assert children.run("probe", b"result") == Outcome("result")
    assert children.run("probe", b"sentence") == Outcome("refused", "This is wrong: change it.")
    for case, kind in (
        (b"traceback", "traceback"),
        (b"wrong", "wrong"),
        (b"unclear", "unclear"),
        (b"outside", "outside"),
        (b"memory", "memory"),
        (b"crash", "crash"),
    ):
        assert children.run("probe", case).kind == kind
    assert children.run("probe", b"result").good  # by the successor of the one that crashed


def test_a_hang_is_ended(children, monkeypatch):
    monkeypatch.setattr("hostile.runner.SECONDS", 0.5)
    assert children.run("probe", b"hang").kind == "hang"


def test_what_a_sentence_is():
    assert is_sentence("x has 3 rows: give 4.")
    assert not is_sentence("two\nlines.")
    assert not is_sentence("\x1b[31mred.")
    assert not is_sentence("")
    assert judged("probe", b"result") == ("result", "")
