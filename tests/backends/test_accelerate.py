"""accelerate: the same parameters and numbers, other passes; and why a model is not fused.

Covers `ckgconv.backends.cuda.passes`.
"""

import copy
from dataclasses import replace

import pytest
import torch
from small_data import small_dataset
from torch import nn

from ckgconv import CKGCN, CKGConv, InputError, backends, recipe
from ckgconv.backends import accelerate, plain, why_not_fused
from ckgconv.backends.cpu.kernel import CPUKernel
from ckgconv.backends.cuda.supports import MOST_NODES, blocks_reason, kernel_reason, stem_reason, sums_in_fixed_order
from ckgconv.nn import Kernel
from ckgconv.recipes import with_value


def small(*settings):
    chosen = recipe("zinc")
    for setting in ("model.width=16", "model.blocks=2", "model.steps=3", *settings):
        chosen = with_value(chosen, setting)
    return chosen


def batch_of(chosen):
    return small_dataset(chosen).batch(torch.tensor([0, 1, 2]))


def test_a_model_keeps_its_parameters_and_its_numbers():
    chosen = small("model.kernel.dropout=0", "model.kernel.mlp_dropout=0")
    model = CKGCN.from_recipe(chosen).double()
    fast = accelerate(copy.deepcopy(model), "cpu")
    assert isinstance(fast, CKGCN)
    assert type(fast.kernel) is CPUKernel
    assert list(fast.state_dict()) == list(model.state_dict())
    batch = batch_of(chosen).apply(lambda value: value.double() if value.is_floating_point() else value)
    for training in (True, False):
        found, expected = fast.train(training)(batch), model.train(training)(batch)
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)
    found.sum().backward()
    assert all(parameter.grad is not None for name, parameter in fast.named_parameters() if "kernel" in name)


def test_a_layer_inside_a_model_of_ones_own_is_accelerated():
    own = nn.Sequential(nn.Linear(4, 16), CKGConv(16, 16), nn.ReLU())
    assert accelerate(own) is own
    assert type(own[1].kernel.mlp) is CPUKernel
    assert type(plain(own)[1].kernel.mlp) is Kernel


def test_a_model_without_an_entry_comes_back_as_it_is():
    class Own(CKGCN):
        pass

    own = accelerate(Own.from_recipe(small()), "cpu")
    assert type(own) is Own
    assert type(plain(own)) is Own


CUDA = "ckgconv.ops.dispatch.runs_triton"


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ((), None),
        (("model.width=136",), "width 136"),
        (("model.kernel.constraint=softplus",), "softplus"),
        (("model.norm=layer",), "not a batch norm"),
        (("model.support=sparse_global",), "sparse global"),
        (("model.combine=concatenate",), "does not add"),
        (("model.encoding=spd",), "does not add"),
        (("model.degree_scaler=coordinates",), "fixed walk"),
        (("model.coordinate_features=2", "model.size_features=true"), None),
        (("model.coordinate_features=20",), "164 channels"),
        (("model.kernel.norm=rms",), "not a batch norm"),
        (("model.drop_path=0.1",), None),
        (("model.head.kind=mlp",), "MLPHead"),
    ],
)
def test_one_question_says_why_a_model_is_not_fused(settings, reason, monkeypatch):
    monkeypatch.setattr(CUDA, lambda device: True)
    found = why_not_fused(CKGCN.from_recipe(small(*settings)), "cpu")
    assert found is None if reason is None else reason in found


def test_reasons_of_the_machine_and_of_the_model(monkeypatch):
    model = CKGCN.from_recipe(small())
    assert "cpu" in why_not_fused(model, "cpu")
    if not torch.cuda.is_available():
        assert "no GPU" in why_not_fused(model, "cuda")
    monkeypatch.setattr(CUDA, lambda device: True)
    assert "float64" in why_not_fused(CKGCN.from_recipe(small()).double(), "cpu")
    assert "Linear" in why_not_fused(nn.Linear(2, 2), "cpu")
    given = CKGCN(small().model, kernels=[nn.Linear(16, 16), nn.Linear(16, 16)])
    assert "user's own" in why_not_fused(given, "cpu")


def test_reasons_of_a_batch(monkeypatch):
    chosen = small()
    model = CKGCN.from_recipe(chosen)
    batch = model.prepare(batch_of(chosen))
    h, e = torch.zeros(len(batch.degree), 16), torch.zeros(batch.pairs.num_pairs, 16)
    assert "not float32 on a GPU" in kernel_reason(model.kernel, e)
    monkeypatch.setattr(CUDA, lambda device: True)
    assert kernel_reason(model.kernel, e) is None
    assert blocks_reason(model.blocks, h, batch.pairs, batch.degree) is None
    assert stem_reason(model.node_stem, model.node_stem.mix, h, len(h)) is None
    assert "32-bit" in stem_reason(model.node_stem, model.node_stem.mix, h, 2**31)
    learned = batch.degree.clone().requires_grad_()
    assert "Edge weights" in blocks_reason(model.blocks, h, batch.pairs, learned)
    assert "Edge weights" in stem_reason(model.pair_stem, model.pair_stem.mix, learned, len(e))
    model.eval()
    assert "evaluation mode" in kernel_reason(model.kernel, e)
    assert "evaluation mode" in blocks_reason(model.blocks, h, batch.pairs, batch.degree)
    assert "evaluation mode" in stem_reason(model.node_stem, model.node_stem.mix, h, len(h))
    monkeypatch.setattr("ckgconv.backends.cuda.supports.several_processes", lambda: True)
    assert "Several processes" in kernel_reason(model.train().kernel, e)


def test_sums_in_a_fixed_order():
    model = CKGCN.from_recipe(small())
    assert sums_in_fixed_order(model)
    assert not sums_in_fixed_order(nn.Linear(2, 2))
    layer_norm = replace(small().model, norm="layer")
    assert not sums_in_fixed_order(CKGCN(layer_norm))


@pytest.mark.parametrize(
    ("model", "device", "sentence"),
    [
        ("a model", "cpu", "is a str: give a torch module"),
        (nn.ReLU(), "tpu", "choose 'cpu' or 'cuda'"),
        (nn.ReLU(), "meta", "choose 'cpu' or 'cuda'"),
    ],
)
def test_refusals_are_sentences(model, device, sentence):
    with pytest.raises(InputError, match=sentence):
        accelerate(model, device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_refused_and_nothing_is_undone():
    model = accelerate(CKGCN.from_recipe(small()), "cpu")
    with pytest.raises(InputError, match="torch sees no GPU"):
        accelerate(model, "cuda")
    assert type(model.kernel) is CPUKernel


def test_a_module_without_parameters_stays_on_the_cpu():
    assert isinstance(accelerate(nn.ReLU()), nn.ReLU)


def test_a_class_of_ones_own_and_a_head_without_a_pass(monkeypatch):
    monkeypatch.setattr(CUDA, lambda device: True)

    class Own(CKGCN):
        pass

    assert "class of your own" in why_not_fused(Own.from_recipe(small()), "cpu")
    assert "NormalisedHead" in why_not_fused(CKGCN.from_recipe("mnist"), "cpu")


def test_on_a_cpu_freed_pages_are_kept(monkeypatch):
    """Only where there are passes: a model without any changes nothing in the process."""
    calls = []
    monkeypatch.setattr(backends, "keep_freed_pages", lambda: calls.append(1))
    accelerate(torch.nn.Linear(2, 2), "cpu")
    assert not calls
    accelerate(CKGConv(2, 2, steps=2), "cpu")
    assert calls


def test_blocks_of_very_many_nodes_are_trained_by_the_plain_module():
    """Until the node pass is known to be right there."""
    model = CKGCN.from_recipe(small()).train()
    batch = model.prepare(batch_of(small()))
    many = torch.empty(MOST_NODES + 1, 16)
    assert "4,097 nodes" in blocks_reason(model.blocks, many, batch.pairs, batch.degree)
    assert "4,097 nodes" not in str(blocks_reason(model.eval().blocks, many, batch.pairs, batch.degree))
