"""Workers that are slow or die take nothing along; covers `ckgconv.serve.worker`."""

import threading
import time

import pytest
from slow_network import opens

from ckgconv.checks import InputError
from ckgconv.serve.limits import Limits
from ckgconv.serve.pool import MOST_SLOW, PORTION, Busy, Pool
from ckgconv.serve.worker import Failed, TooSlow

LIMITS = Limits(seconds=0.5, letters=40, workers=2)


@pytest.fixture(scope="module")
def pool():
    pool = Pool(opens, LIMITS)
    pool.ask(60, "process")
    pool.ask(60, "process")
    yield pool
    pool.close()


def rows(pool, smiles, seconds=60):
    return [row for portion in pool.rows("predict", smiles, seconds) for row in portion]


def test_rows_come_in_order(pool):
    smiles = ["C" * (place % 7) for place in range(2 * PORTION + 5)]
    assert rows(pool, smiles) == [{"smiles": each, "length": len(each)} for each in smiles]
    assert rows(pool, []) == []


@pytest.mark.parametrize("bad", ["slow", "dies"])
def test_one_bad_molecule_alone_has_a_reason(pool, bad):
    found = rows(pool, ["C", bad, "CC", "C" * 41])
    assert found[0] == {"smiles": "C", "length": 1}
    assert found[1] == {"smiles": bad, "reason": "The molecule took longer than 0.5 s."}
    assert found[2] == {"smiles": "CC", "length": 2}
    assert found[3]["reason"] == "The SMILES has 41 letters: give at most 40."


def test_others_are_answered_meanwhile(pool):
    thread = threading.Thread(target=rows, args=(pool, ["slow"]))
    thread.start()
    time.sleep(0.1)
    start = time.monotonic()
    assert rows(pool, ["CC"]) == [{"smiles": "CC", "length": 2}]
    assert thread.is_alive() or time.monotonic() - start < 0.4
    thread.join()


def test_a_request_of_slow_molecules_ends(pool):
    found = rows(pool, [f"slow{place}" for place in range(6)])
    assert sum("took longer" in row["reason"] for row in found) == MOST_SLOW
    assert found[-1]["reason"].startswith("Not computed, since 3 molecules of the request were slow")


def test_a_request_has_so_much_time(pool):
    found = rows(pool, ["C"], seconds=-1)
    assert found[0]["reason"].startswith("Not computed within the")


def test_sentences_and_failures_come_back(pool, capfd):
    with pytest.raises(InputError, match="a sentence"):
        pool.ask(5, "refuse", sentence="a sentence")
    with pytest.raises(Failed, match="ZeroDivisionError"):
        pool.ask(5, "fail")
    with pytest.raises(TooSlow):
        pool.ask(0.2, "predict", smiles=["slow"])


def test_a_worker_that_ended_is_replaced(pool):
    before = {worker.process.pid for worker in pool.workers}
    rows(pool, ["dies"])
    after = {worker.process.pid for worker in pool.workers}
    assert len(before & after) == 1
    assert {pool.ask(5, "process"), pool.ask(5, "process")} == after


def test_nobody_waits_forever(pool):
    alone = Pool(opens, Limits(workers=1, request_seconds=0.2))
    held = alone.free.get()
    with pytest.raises(Busy):
        alone.ask(1, "process")
    alone.free.put(held)
    alone.close()
    with pytest.raises(Busy):
        alone.ask(1, "process")
    assert not any(worker.process.is_alive() for worker in alone.workers)
