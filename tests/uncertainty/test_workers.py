"""Processes that are killed, and others that take their place."""

import os
import signal
import time
from multiprocessing import Pipe, active_children, get_context

import pytest
from dying_worker import DEADLY, doubled

from ckgconv.uncertainty.workers import Ended, Workers


def test_tasks_of_a_process_that_ended_are_asked_again(tmp_path):
    with Workers(2, doubled, forked=True) as crew:
        tasks = [crew.submit(value) for value in (1, str(tmp_path / "once"), 3)]
        with pytest.raises(Ended):
            tasks[1].result()
        tasks = [crew.again(task) for task in tasks]
        assert [task.result() for task in tasks] == [2, "survived", 6]
        assert crew.generation == 1
        assert crew.again(tasks[0]) is tasks[0]


def test_a_process_that_ended_between_two_tasks_is_replaced():
    with Workers(1, doubled, forked=True) as crew:
        assert crew.submit(1).result() == 2
        for process in active_children():
            os.kill(process.pid, signal.SIGKILL)
            process.join()
        time.sleep(0.2)
        task = crew.submit(2)
        for _ in range(2):  # the pool may not have noticed yet
            try:
                assert task.result() == 4
            except Ended:
                task = crew.again(task)
        assert task.result() == 4
        assert crew.alone(4) == 8
        with pytest.raises(Ended):
            crew.alone(DEADLY)


def start_two(sender):
    crew = Workers(2, doubled, forked=True)
    [crew.submit(number) for number in range(4)][-1].result()
    sender.send([each.pid for each in active_children()])
    time.sleep(60)


def test_processes_end_with_the_one_that_started_them():
    receiver, sender = Pipe(duplex=False)
    parent = get_context("fork").Process(target=start_two, args=(sender,))
    parent.start()
    pids = receiver.recv()
    assert len(pids) == 2
    parent.kill()
    parent.join()
    deadline = time.monotonic() + 30
    while any(map(alive, pids)):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
