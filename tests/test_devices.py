"""The recorded numbers on every available device: predictions, gradients, running statistics, all encodings."""

import pytest
import torch
from golden import Golden, small_recipe
from graphs_for_tests import molecules

from ckgconv import CKGCN
from ckgconv import recipe as recipe_of
from ckgconv.data import load
from ckgconv.tasks.losses import l1, weighted_binary

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
CASES = [
    ("ckgcn_zinc_small.npz", "zinc", "global", "rrwp"),
    ("ckgcn_zinc_small.npz", "zinc", "sparse_global", "rrwp"),
    ("ckgcn_khop_small.npz", "khop", 2, "rrwp"),
    ("ckgcn_pattern_small.npz", "pattern", "global", "rrwp"),
    ("ckgcn_pe_small.npz", "spd", "global", "spd"),
    ("ckgcn_pe_small.npz", "rd", "global", "rd"),
    ("ckgcn_pe_small.npz", "rwse", "global", "pair_rwse"),
]

pytestmark = pytest.mark.usefixtures("double")


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[2]}")
def test_recorded_training_pass(device, case):
    golden = Golden(*case)
    data, model = golden.data(torch.float64).to(device), golden.model(torch.float64).to(device).train()
    prediction = model(data)
    loss = (weighted_binary if case[1] == "pattern" else l1)(prediction, data.y)
    loss.backward()
    torch.testing.assert_close(prediction.cpu(), torch.from_numpy(golden.arrays["train/pred"]), rtol=0, atol=1e-9)
    gradients, buffers = golden.named("grad/"), golden.named("buffer_after_train_forward/")
    for name, parameter in model.named_parameters():
        if name in gradients:
            torch.testing.assert_close(parameter.grad.cpu(), gradients[name], rtol=0, atol=1e-9)
    for name, buffer in model.named_buffers():
        torch.testing.assert_close(buffer.cpu(), buffers[name], rtol=0, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
def test_dropout_trains_on_the_device(device):
    recipe = small_recipe("zinc", "sparse_global", "rrwp")
    model = CKGCN(recipe).to(device)
    model.kernel.kernel_dropout = 0.5
    model(molecules(5, 9).to(device)).sum().backward()
    assert all(torch.isfinite(weight.grad).all() for weight in model.parameters() if weight.grad is not None)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton kernels need a GPU")
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[1]}-{case[2]}")
def test_recorded_numbers_by_triton_kernels(case):
    """float32, which runs as Triton kernels, within the tolerance of the records for float32."""
    torch.set_default_dtype(torch.float32)
    golden = Golden(*case)
    data = golden.data(torch.float32).to("cuda")
    with torch.no_grad():
        evaluated = golden.model(torch.float32).to("cuda").eval()(data)
    assert within(evaluated, torch.from_numpy(golden.arrays["eval/pred"]), 1e-5)
    model = golden.model(torch.float32).to("cuda").train()
    prediction = model(data)
    (weighted_binary if case[1] == "pattern" else l1)(prediction, data.y).backward()
    assert within(prediction, torch.from_numpy(golden.arrays["train/pred"]), 2e-5)
    gradients = golden.named("grad/")
    largest = max(float(value.abs().max()) for value in gradients.values())
    for name, parameter in model.named_parameters():
        if name in gradients:
            assert float((parameter.grad.cpu().double() - gradients[name]).abs().max()) < 2e-5 * largest, name


@pytest.mark.skipif(not torch.cuda.is_available(), reason="compares a GPU with the CPU")
@pytest.mark.parametrize("deterministic", [False, True])
def test_a_large_graph_has_the_same_pairs_on_a_gpu(deterministic):
    """Ten thousand nodes, whose walks are sparse matrices."""
    chosen = recipe_of("nodes-heterophilous")
    model, data = CKGCN.from_recipe(chosen).double(), load(chosen.data).batch(torch.arange(1))
    data.x = data.x.double()
    expected = model.prepare(data)
    torch.use_deterministic_algorithms(deterministic, warn_only=True)
    try:
        found = model.to("cuda").prepare(data.clone().to("cuda"))
    finally:
        torch.use_deterministic_algorithms(False)
    for name in ("rowptr", "sender", "coordinates", "support_size"):
        torch.testing.assert_close(getattr(found.pairs, name).cpu(), getattr(expected.pairs, name), rtol=0, atol=1e-12)
    for name in ("edge_row", "node_encoding", "degree"):
        torch.testing.assert_close(getattr(found, name).cpu(), getattr(expected, name), rtol=0, atol=1e-12)


def within(found, expected, tolerance):
    """Whether all errors are below the tolerance, relative to the largest entry."""
    return float((found.detach().cpu().double() - expected).abs().max()) < tolerance * float(expected.abs().max())
