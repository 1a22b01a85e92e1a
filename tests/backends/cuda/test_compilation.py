"""What is said about compiled kernels, and that they are found again in Triton's cache."""

from dataclasses import replace

import pytest
from on_device import needs_triton
from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.backends.cuda.compilation import compiling
from ckgconv.engine.watcher import Silence

pytestmark = needs_triton


def compile_it() -> None:
    import triton
    from add_kernel import add_one
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.runtime.jit import JITFunction

    source = ASTSource(JITFunction(add_one), {"x": "*fp32", "N": "i32"}, {})
    triton.compile(source, target=GPUTarget("cuda", 90, 32))


def test_the_first_compilation_is_announced_and_the_next_finds_it(tmp_path, monkeypatch):
    from triton import knobs

    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    said = []
    with compiling("training", said.append) as first:
        compile_it()
    assert (first.compiled, first.cached) == (1, 0)
    assert said[0] == f"Compiling the Triton kernels of training; later runs find them in {tmp_path}."
    assert said[1].startswith("Training: 1 kernels compiled, 0 found, ")
    with compiling("training", said.append) as again:
        compile_it()
    assert (again.compiled, again.cached) == (0, 1)
    assert len(said) == 2  # nothing takes long where everything is found
    assert knobs.compilation.listener is None


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
