"""What is said about compiled kernels, and that they are found again in Triton's cache."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from on_device import needs_triton
from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.backends.cuda.compilation import compiling
from ckgconv.engine.watcher import Silence

pytestmark = needs_triton


def printed(script, cache):
    """What a script prints in a process of its own: Triton's interpreter leaves its operations in the language."""
    environment = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    environment["TRITON_CACHE_DIR"] = str(cache)
    path = Path(__file__).with_name(script)
    done = subprocess.run([sys.executable, str(path)], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


def test_kernels_compile_ahead_without_running(tmp_path):
    compiled, later, changed, said = printed("ahead_script.py", tmp_path)
    assert compiled == later == 3  # two sizes, and the backward pass; launches that follow compile nothing
    assert changed == 0
    assert said  # a kernel that does not compile is named when it is launched


def test_the_first_compilation_is_announced_and_the_next_finds_it(tmp_path):
    (first, again), said = printed("compilation_script.py", tmp_path)
    assert (first, again) == ([1, 0], [0, 1])  # compiled and found
    assert said[0] == f"Compiling the Triton kernels of training; later runs find them in {tmp_path}."
    assert said[1].startswith("Training: 1 kernels compiled, 0 found, ")
    assert len(said) == 2  # nothing is said where everything is found


def test_a_listener_of_the_users_own_is_told_too_and_returns(monkeypatch):
    from triton import knobs

    heard = []
    monkeypatch.setattr(knobs.compilation, "listener", lambda **event: heard.append(event))
    own = knobs.compilation.listener

    def fail() -> None:
        with compiling("evaluation", lambda sentence: None):
            knobs.compilation.listener(cache_hit=True, times=None)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert heard == [{"cache_hit": True, "times": None}]
    assert knobs.compilation.listener is own


def test_a_watcher_with_notes_hears_it_and_one_without_need_not():
    chosen = recipe("zinc")
    model = replace(chosen.model, width=8, blocks=1, steps=3)
    chosen = replace(chosen, model=model, training=replace(chosen.training, epochs=1, warmup_epochs=0, batch_size=8))
    heard = []

    class Notes(Silence):
        def note(self, sentence):
            heard.append(sentence)

    for watcher in (Notes(), Silence()):
        train(chosen, data=small_dataset(chosen), device="cpu", watcher=watcher).learner.tell("It takes a while.")
    assert heard == ["It takes a while."]
