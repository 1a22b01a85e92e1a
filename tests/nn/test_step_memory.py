"""Steps that do not fit are refused before they start; covers `ckgconv.engine.training_memory` too."""

from dataclasses import replace

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecules
from torch import nn

from ckgconv import CKGCN, CKGConv, InputError, recipe, train
from ckgconv.backends import accelerate
from ckgconv.data import zinc
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.engine.training_memory import least_rows
from ckgconv.graphs import pack
from ckgconv.nn.kernel import Kernel
from ckgconv.nn.kernel_memory import values_per_kind
from ckgconv.nn.step_memory import least_row_size, row_size
from ckgconv.pairs import global_support, memory
from ckgconv.pe import rrwp

GIGABYTE = 10**9
# Pairs of a mean graph of Peptides (151 nodes) and of its largest.
PEPTIDES_MEAN, PEPTIDES_LARGEST = 30_000, 444**2


@pytest.fixture
def free(monkeypatch):
    """Sets the memory of every device."""

    def set_free(size, small=0):
        monkeypatch.setattr(memory, "free_bytes", lambda device: size)
        monkeypatch.setattr(memory, "SMALL", small)
        monkeypatch.setattr("ckgconv.pairs.encoding.check_memory", lambda *_: None)  # of the coordinates alone

    return set_free


def path(nodes):
    one_way = torch.stack([torch.arange(nodes - 1), torch.arange(1, nodes)])
    return torch.cat([one_way, one_way.flip(0)], dim=1)


def test_formula():
    with torch.enable_grad():
        assert row_size(448, 32, 5).step_bytes(10, 7, torch.float32) == 10 * (32 + 4 * (448 + 148)) + 3 * 4 * 7
        assert least_row_size(32, 5).step_bytes(10, 7, torch.float32) == 10 * (32 + 4 * (96 + 10)) + 3 * 4 * 7
        with torch.autocast("cpu", torch.bfloat16):
            assert row_size(448, 32, 5).step_bytes(1, 0, torch.float32) == 32 + 4 * (224 + 148)
    with torch.no_grad():
        assert row_size(64, 32, 5).step_bytes(10, 7, torch.float64) == 10 * (32 + 8 * (64 + 74))
        assert least_row_size(32, 5).step_bytes(10, 7, torch.float64) == 10 * (32 + 8 * (64 + 10))


@pytest.mark.parametrize(("norm", "blocks"), [("batch", 2), ("layer", 1), ("none", 2), ("batch", 0)])
def test_kernel_values_are_those_that_autograd_keeps(norm, blocks):
    """Of a plain kernel on rows that are wide enough to tell them from parameters."""
    graphs = pack(path(20), num_nodes=20)
    pairs = global_support(graphs, rrwp(graphs, 2))
    kernel = Kernel(8, 8, layers=3, blocks=blocks, norm=norm)
    features = torch.rand(400, 8, requires_grad=True)
    kept: dict[int, int] = {}

    def keep(tensor):
        if tensor.shape == (400, 8) and tensor.data_ptr() != features.data_ptr():
            kept[tensor.data_ptr()] = 8
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        values = [each.stored * each.stored for each in kernel(features, pairs)]  # ψ is kept by what follows
    assert kernel.values_per_row() == sum(kept.values())
    with torch.no_grad():
        assert kernel.values_per_row() == len(values) * 8


def test_masks_are_counted():
    plain, dropping = (Kernel(8, 8, blocks=2, mlp_dropout=p, kernel_dropout=p) for p in (0.0, 0.5))
    assert dropping.values_per_row() == plain.values_per_row() + 3 * 8 // 4
    assert dropping.eval().values_per_row() == plain.values_per_row()


def test_passes_of_a_cpu_keep_less():
    model = CKGCN.from_recipe("zinc")
    plain = model.step_bytes(10**6)
    fast = accelerate(model, "cpu").step_bytes(10**6)
    assert 0.3 * plain < fast < 0.6 * plain
    with torch.no_grad():
        assert model.eval().step_bytes(10**6) < 0.1 * fast
    # With gradients in evaluation mode the passes do not apply.
    assert model.step_bytes(10**6) > 2 * fast


def test_a_network_is_refused_before_any_pair_is_formed(free, monkeypatch):
    free(20 * GIGABYTE)
    model = CKGCN.from_recipe(replace(small_recipe("zinc", "global", "rrwp"), width=32))
    monkeypatch.setattr(model, "prepare", lambda data: pytest.fail("formed pairs"))
    data = molecules(10, dtype=torch.float32)[0]
    data.x, data.edge_index, data.edge_attr = torch.zeros(10_000, 1, dtype=torch.int64), path(10_000), None
    words = (
        r"A step with gradients on 100,000,000 pairs needs about 4\d\d\.\d GB; the device cpu has 20.0 GB for it: "
        r"choose support 'sparse_global' \(the same numbers\) or a number of hops as support, a smaller width, or "
        r"smaller batches"
    )
    with pytest.raises(InputError, match=words):
        model(data)
    with torch.no_grad(), pytest.raises(InputError, match=r"A step on 100,000,000 pairs needs about \d\d\.\d GB"):
        model(data)


def test_a_layer_is_refused_too(free, monkeypatch):
    free(4 * GIGABYTE)
    x = torch.rand(10_000, 32)
    for name in ("rrwp", "spd"):
        layer = CKGConv(32, 32, steps=4, pe=name)
        monkeypatch.setattr(layer, "prepare", lambda *_: pytest.fail("formed pairs"))
        remedy = "choose a number" if name == "spd" else "choose support 'sparse_global'"
        with pytest.raises(InputError, match=f"A step with gradients on 100,000,000 pairs .*: {remedy}"):
            layer(x, path(10_000))
    free(10**6)
    for support, remedy in (("sparse_global", "choose fewer steps"), (2, "choose fewer hops")):
        with pytest.raises(InputError, match=remedy):
            CKGConv(32, 32, steps=4, support=support)(x[:3_000], path(3_000))
    given = CKGConv(32, 2, steps=4, kernel=nn.Linear(5, 32))
    with pytest.raises(InputError, match="on 40,000 pairs"):
        given(x[:200], path(200))


def test_a_layer_with_dropout_in_its_kernel_computes_every_row():
    every, some = (CKGConv(2, 32, steps=4, mlp_dropout=p).step_bytes(10**6) for p in (0.1, 0.0))
    assert every > 3 * some


def test_kinds_of_pairs_are_counted_once_they_are_known(free):
    """A random graph has many kinds of pairs, a ring has few."""
    torch.manual_seed(0)
    layer, x = CKGConv(8, 64, steps=4), torch.rand(60, 8)
    ring = torch.cat([path(60), torch.tensor([[59, 0], [0, 59]])], dim=1)
    free(layer.step_bytes(60**2))
    assert layer(x, ring).shape == (60, 64)
    with pytest.raises(InputError, match=r"A step with gradients on 1,\d\d\d pairs needs about"):
        layer(x, torch.randint(60, (2, 200)))


def test_an_operation_over_kinds_keeps_less_than_the_modules():
    kernel = Kernel(8, 8, blocks=2)
    assert values_per_kind(kernel) == 8 * 8 + 8
    assert values_per_kind(kernel.eval()) == kernel.values_per_row()


def test_pairs_of_several_graphs_are_counted_graph_by_graph(free):
    model = CKGCN.from_recipe(small_recipe("zinc", "global", "rrwp"))
    data = molecules(20, 10, 5, dtype=torch.float32)
    needed = model.step_bytes(400 + 100 + 25)
    free(needed)
    assert model(data).shape == (3, 1)
    model.allowed_bytes = 0
    free(needed - 1)
    with pytest.raises(InputError, match="on 525 pairs"):
        model(data)


def test_what_a_step_was_allowed_it_may_have_again(free):
    model = CKGCN.from_recipe(small_recipe("zinc", "global", "rrwp"))
    data = molecules(20, dtype=torch.float32)
    needed = model.step_bytes(400)
    free(needed)
    model(data)
    assert model.allowed_bytes == needed
    free(0)  # the process holds it
    model(data)
    with pytest.raises(InputError, match="on 900 pairs"):
        model(molecules(30, dtype=torch.float32))
    free(model.step_bytes(900) - needed)
    model(molecules(30, dtype=torch.float32))


def test_a_model_without_an_estimate_is_never_refused(free):
    free(0)
    model = CKGCN.from_recipe(small_recipe("zinc", "global", "rrwp"))
    model.step_bytes = lambda rows: 0
    assert model(molecules(5, dtype=torch.float32)).shape == (1, 1)


@pytest.mark.parametrize("name", ["zinc", "peptides-func"])
def test_shipped_recipes_fit_a_machine_of_24_gigabytes(name, free):
    """The pairs of a mean batch of 32 graphs, and of the largest graph."""
    free(24 * GIGABYTE)
    model = accelerate(CKGCN.from_recipe(name), "cpu")
    rows = 32 * 600 if name == "zinc" else max(32 * PEPTIDES_MEAN, PEPTIDES_LARGEST)
    model.check_step(rows, torch.device("cpu"))
    assert 10**7 < model.step_bytes(rows) < 24 * GIGABYTE


def demo(**model):
    base = recipe("zinc-demo")
    training = replace(base.training, epochs=1, warmup_epochs=0, batch_size=4)
    return replace(base, model=replace(base.model, width=8, blocks=2, steps=3, **model), training=training)


@pytest.mark.parametrize("support", ["global", 2])
def test_a_run_is_refused_before_its_first_step(support, free, tmp_path):
    free(10**5)
    with pytest.raises(InputError, match="A step with gradients on"):
        train(demo(support=support), data=zinc().limited(8), device="cpu", folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_all_draws_of_a_step_count(free):
    data, one = zinc().limited(8), demo(support="global")
    several = replace(one, training=replace(one.training, draws=4))
    learner = make_learner(make_fabric("cpu", "32"), CKGCN.from_recipe(one), data, one)
    free(2 * learner.model.train().step_bytes(least_rows(learner)))
    train(one, data=data, device="cpu")
    with pytest.raises(InputError, match="A step with gradients on"):
        train(several, data=data, device="cpu")


def test_rows_that_some_step_has():
    data, whole, near = zinc().limited(8), demo(support="global"), demo(support=1)
    learner = make_learner(make_fabric("cpu", "32"), CKGCN.from_recipe(whole), data, whole)
    sizes = data.node_ptr.diff()[data.train].double()
    assert least_rows(learner) == int(max(sizes.max() ** 2, 4 * sizes.square().mean()))
    hops = make_learner(make_fabric("cpu", "32"), CKGCN.from_recipe(near), data, near)
    assert int(sizes.max()) < least_rows(hops) < int(sizes.max()) ** 2
