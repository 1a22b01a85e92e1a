"""What golden files cannot show, since they have no dropout, one batch and perturbed weights: each excludes a cause of
other results than the published ones.

starting values       by their distribution, for every parameter (section 6 of the golden README)
dropout               rate, factor, independence, where it acts; plain, on a CPU, in the fused pass and its whole steps
order of batches      every graph once per epoch, another order in each epoch and for each seed; the last short batch
running statistics    momentum 0.1 and unbiased variance of what a norm sees in training, masks included
the epoch picked      the first of the best, with the weights that were validated; evaluated in float32

The optimiser is in engine/test_published_optimizer.py.
"""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from on_device import DEVICE, HAS_TRITON, needs_triton
from scipy.stats import kstest
from small_data import small_dataset
from torch.nn import functional as F

from ckgconv import recipe, train
from ckgconv.backends import accelerate, plain
from ckgconv.engine import run as run_module
from ckgconv.engine.batches import training_batches
from ckgconv.engine.epoch import eager_losses, evaluate
from ckgconv.engine.run import make_learner
from ckgconv.engine.samples import eager_sample
from ckgconv.engine.setup import make_fabric, seed_epoch
from ckgconv.graphs import Pairs
from ckgconv.nn import Kernel
from ckgconv.nn.models import build_model
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops import dispatch
from ckgconv.ops.launch import draw_seeds, threshold
from ckgconv.recipe import Recipe

# Of a fixed seed: no draw is repeated until it passes.
UNLIKELY = 1e-5

# ---- starting values ------------------------------------------------------------------------------------------------

SMALL = ("normal", 0.02)


def linear(fan_in: int) -> tuple[str, float]:
    """Torch's default for weights and biases of linear maps."""
    return "uniform", fan_in**-0.5


def xavier(fan_in: int, fan_out: int) -> tuple[str, float]:
    return "normal", (2 / (fan_in + fan_out)) ** 0.5


def expected(name: str, shape: tuple[int, ...], chosen: Recipe) -> tuple[str, float]:
    """Distribution and its scale, or ("constant", value), as the published network starts."""
    model, width = chosen.model, chosen.model.width
    if name == "pair_stem.encoder.norm.scale":
        return "constant", model.coordinate_scale
    if name.endswith((".scale", ".shift")):
        return "constant", float(name.endswith(".scale"))
    if re.match(r"(node|edge)_encoder\.tables", name):
        molecule = (6 / sum(shape)) ** 0.5
        return ("uniform", molecule) if model.node.kind == "molecule" else ("normal", 1.0)
    if re.match(r"(node|edge)_encoder\.linear", name):
        attributes = model.node if name.startswith("node") else model.edge
        return linear(attributes.sizes[0])
    if name == "edge_encoder.vector":
        return "normal", 1.0
    if name.startswith("head."):
        return linear(shape[-1]) if name.endswith("weight") else ("bias", 0.0)
    if "degree_scaler" in name:
        return "normal", (width + 1) ** -0.5
    if name.endswith(".bias"):
        return linear(2 * width if "ffn_out" in name else width)
    if re.search(r"pair_stem\.(mix|position)|convolution\.projection", name):
        return xavier(shape[1], shape[0])
    assert re.search(r"kernel\.|ffn_|node_stem\.mix", name), name
    return SMALL


@pytest.mark.parametrize("name", ["zinc", "pattern", "mnist", "peptides-func"])
def test_every_parameter_starts_as_published(name):
    chosen = recipe(name)
    torch.manual_seed(7)
    model = build_model(chosen.model)
    for parameter, values in model.named_parameters():
        kind, scale = expected(parameter, tuple(values.shape), chosen)
        drawn = values.detach().double().flatten().numpy()
        if kind == "bias":  # of the head: torch's default for the inputs of its weight
            kind, scale = linear(model.get_parameter(parameter.removesuffix("bias") + "weight").shape[-1])
        if kind == "constant":
            assert (drawn == np.float32(scale)).all(), parameter
        elif kind == "uniform":
            assert abs(drawn).max() <= scale * (1 + 1e-6), parameter
            assert kstest(drawn, "uniform", (-scale, 2 * scale)).pvalue > UNLIKELY, parameter
        else:
            assert kstest(drawn, "norm", (0, scale)).pvalue > UNLIKELY, parameter


def test_no_two_layers_start_alike_and_seeds_differ():
    models = []
    for seed in (0, 1):
        torch.manual_seed(seed)
        models.append(build_model(recipe("zinc").model))
    one, other = (model.kernel.linear.weight.detach().flatten(1) for model in models)
    together = torch.corrcoef(torch.cat([one, other]))  # 10 layers of either seed
    assert (together - torch.eye(20)).abs().max() < 5 / 4096**0.5
    blocks = torch.stack([block.ffn_in.weight.detach().flatten() for block in models[0].blocks])
    assert (torch.corrcoef(blocks) - torch.eye(10)).abs().max() < 5 / 8192**0.5


def test_norms_start_without_history():
    for norm in build_model(recipe("zinc").model).modules():
        if isinstance(norm, WeightedBatchNorm):
            mean, variance = norm.running
            assert (mean == 0).all()
            assert (variance == 1).all()
            assert (norm.momentum, norm.epsilon) == (0.1, 1e-5)


# ---- dropout --------------------------------------------------------------------------------------------------------

ROWS, WIDTH, LAYERS = 256, 16, 3
BACKENDS = ["plain", "cpu", pytest.param("cuda", marks=pytest.mark.skipif(not HAS_TRITON, reason="no Triton"))]


def pairs_of(rows: int) -> Pairs:
    nothing, pointer = torch.zeros(rows, dtype=torch.int64), torch.tensor([0, rows])
    size, graph = torch.full((1,), float(rows)), torch.zeros(1, dtype=torch.int64)
    return Pairs(pointer, nothing, nothing, torch.zeros(rows, 1), size, graph, None)


def kernel_on(backend: str, monkeypatch, **dropouts) -> Kernel:
    kernel = Kernel(WIDTH, WIDTH, LAYERS, blocks=1, **dropouts)
    if backend == "plain":
        return kernel
    if backend == "cuda":
        from ckgconv.backends.cuda.kernel import FusedKernel
        from ckgconv.backends.cuda.supports import kernel_reason

        monkeypatch.setattr(dispatch, "runs_triton", lambda device: True)
        kernel.__class__ = FusedKernel
        assert kernel_reason(kernel, torch.zeros(ROWS, WIDTH)) is None
        return kernel
    accelerated: Kernel = accelerate(kernel, "cpu")
    assert type(accelerated).__name__ == "CPUKernel"
    return accelerated


def steps_of(kernel: Kernel, x: torch.Tensor) -> torch.Tensor:
    """ψ of three steps [3, L, R, D]."""
    with torch.no_grad():
        steps = [torch.stack([psi.stored for psi in kernel(x, pairs_of(ROWS))]) for _ in range(3)]
    return torch.stack(steps)


def check_masks(kept: torch.Tensor, probability: float) -> None:
    """Share kept, and correlations between steps, layers, rows and channels, within five standard errors."""
    spread = (probability * (1 - probability)) ** 0.5
    centred = (kept.double() - (1 - probability)) / spread
    assert abs(centred.mean()) < 5 / centred.numel() ** 0.5
    for axis in range(4):
        length = kept.shape[axis]
        for lag in (1, 2):
            one, other = centred.narrow(axis, lag, length - lag), centred.narrow(axis, 0, length - lag)
            assert abs((one * other).mean()) < 5 / one.numel() ** 0.5, (axis, lag)
    # No channel, and no layer, is dropped more often than the others.
    for axes in ((0, 1, 2), (0, 2, 3), (1, 2, 3)):
        shares = centred.mean(axes)
        assert shares.abs().max() < 5 / (centred.numel() / shares.numel()) ** 0.5


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_of_the_kernel_itself(backend, monkeypatch):
    """ψ = 1 before dropout: what is left is the mask, scaled."""
    probability = recipe("zinc").model.kernel.dropout
    kernel = kernel_on(backend, monkeypatch, kernel_dropout=probability).train()
    torch.nn.init.zeros_(kernel.linear.weight)
    torch.nn.init.ones_(kernel.linear.bias)
    psi = steps_of(kernel, torch.randn(ROWS, WIDTH))
    assert psi.unique().tolist() == pytest.approx([0, 1 / (1 - probability)])
    check_masks(psi > 0, probability)
    assert (steps_of(kernel.eval(), torch.randn(ROWS, WIDTH)) == 1).all()


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_inside_the_kernel(backend, monkeypatch):
    """L₂ returns 1, x = 0: the last norm sees the mask itself, whose sign its linear map returns."""
    probability = recipe("zinc").model.kernel.mlp_dropout
    kernel = kernel_on(backend, monkeypatch, mlp_dropout=probability).train()
    (block,) = kernel.blocks
    torch.nn.init.zeros_(block.linear_out.weight)
    torch.nn.init.ones_(block.linear_out.bias)
    kernel.linear.weight.data.copy_(torch.eye(WIDTH))
    torch.nn.init.zeros_(kernel.linear.bias)
    psi = steps_of(kernel, torch.zeros(ROWS, WIDTH))
    check_masks(psi > 0, probability)
    # Running statistics after three steps tell the factor: mean 1 and variance p/(1 - p) of mask/(1 - p).
    mean, variance = kernel.norm.running
    share = 1 - 0.9**3
    assert float(mean.mean()) / share == pytest.approx(1, abs=0.01)
    found = (float(variance.mean()) - 0.9**3) / share
    assert found == pytest.approx(probability / (1 - probability), rel=0.08)


@needs_triton
@pytest.mark.parametrize("probability", [0.5, 0.1])
def test_masks_of_whole_steps(probability):
    """As the pairs pass numbers them: stages 1, 3 and 4 of ten layers, seeds as steps of three epochs draw them."""
    import triton
    from kept_kernel import write_kept

    rows, width, layers, level = 1024, 64, 10, threshold(probability)[0]
    masks = []
    for epoch in (0, 1, 1999):
        seed_epoch(3, epoch)
        seed = int(draw_seeds(torch.device("cpu"), 1))
        for stage in (1, 3, 4):
            for layer in range(layers):
                mask = torch.empty(rows, width, device=DEVICE)
                grid = (triton.cdiv(rows, 512),)
                write_kept[grid](mask, seed + stage * layers + layer, rows, width, level, 1.0, 512, width)
                masks.append(mask.cpu())
    kept = torch.stack(masks)
    check_masks(kept.view(3, 3 * layers, rows, width) > 0, probability)
    # Not neighbours alone: any two masks, of one step or of two.
    together = torch.corrcoef(kept.flatten(1)) - torch.eye(len(masks))
    assert together.abs().max() < 5.5 / (rows * width) ** 0.5


def test_published_dropout_is_where_the_recipe_says():
    """Of ZINC: 0.5 on ψ, 0.1 in its MLP, none in blocks and head; nothing is dropped in evaluation."""
    model = build_model(recipe("zinc").model)
    assert (model.kernel.kernel_dropout, {block.dropout for block in model.kernel.blocks}) == (0.5, {0.1})
    assert {block.dropout for block in model.blocks} == {0.0}
    assert not any(block.drop_path.drops for block in model.blocks)


# ---- order of batches -----------------------------------------------------------------------------------------------


def order(seed: int, epoch: int, graphs: int = 10_000) -> torch.Tensor:
    seed_epoch(seed, epoch)
    return torch.cat(list(training_batches(torch.arange(graphs), 32, rank=0, world=1)))


def test_every_graph_is_trained_on_once_per_epoch_in_another_order_each_time():
    orders = [order(seed, epoch) for seed in (0, 1) for epoch in (0, 1, 2)]
    for each in orders:
        assert torch.equal(each.sort().values, torch.arange(10_000))
    places = torch.stack(orders).double()
    assert (torch.corrcoef(places) - torch.eye(6)).abs().max() < 5 / 10_000**0.5
    assert torch.equal(orders[1], order(0, 1))


def test_the_last_short_batch_is_trained_on_with_its_own_mean():
    sizes = [len(batch) for batch in training_batches(torch.arange(10_000), 32, rank=0, world=1)]
    assert sizes == [32] * 312 + [16]
    chosen = small(batch_size=4)
    data = small_dataset(chosen)
    learner = make_learner(make_fabric("cpu", "32"), build_model(chosen.model), data, chosen)
    seed_epoch(0, 0)
    last = list(training_batches(data.train, 4, 0, 1))[-1]
    assert len(last) not in (0, 4)
    seed_epoch(0, 0)
    counts = [count for count, _ in eager_losses(learner)]
    assert counts[-1] == len(last)
    assert sum(counts) == len(data.train)
    sample = eager_sample(learner, last, "train")
    prediction = learner.forward(sample.batch).detach()
    expected_loss = F.l1_loss(prediction.squeeze(-1), sample.target.view(-1))
    torch.testing.assert_close(learner.loss(prediction, sample.target), expected_loss)


# ---- running statistics ---------------------------------------------------------------------------------------------


def small(**training) -> Recipe:
    chosen = recipe("zinc")
    settings = {"epochs": 5, "warmup_epochs": 0, "batch_size": 4, **training}
    model = replace(chosen.model, width=8, blocks=2, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, **settings))


def test_running_statistics_follow_what_norms_see_in_training():
    """r ← 0.9 r + 0.1 m with the mean and the unbiased variance of the input, after dropout."""
    chosen = small()
    learner = make_learner(make_fabric("cpu", "32"), build_model(chosen.model), small_dataset(chosen), chosen)
    model = plain(learner.model).train()
    wanted, found = {}, {}

    def watch(name: str, norm: WeightedBatchNorm):
        def follow(module, inputs, output):
            x, layer = inputs[0].detach().double(), inputs[2] if len(inputs) > 2 else 0
            mean, variance = wanted.setdefault((name, layer), (torch.zeros(x.shape[1]), torch.ones(x.shape[1])))
            wanted[name, layer] = 0.9 * mean + 0.1 * x.mean(0), 0.9 * variance + 0.1 * x.var(0)
            running = norm.running
            found[name, layer] = tuple(each.view(-1, x.shape[1])[layer].clone() for each in running)

        norm.register_forward_hook(follow)

    for name, norm in model.named_modules():
        if isinstance(norm, WeightedBatchNorm):
            watch(name, norm)
    for _ in range(3):
        model(eager_sample(learner, learner.data.train[:6], "train").batch)
    # Of each stem two, of each kernel five, of each block two.
    assert len(wanted) == 4 + 2 * 5 + 2 * 2
    for key, moments in wanted.items():
        for mine, theirs in zip(found[key], moments, strict=True):
            torch.testing.assert_close(mine.double(), theirs.double(), rtol=1e-4, atol=1e-5, msg=str(key))


# ---- the epoch that is picked ---------------------------------------------------------------------------------------


class Keeps:
    """The state of the model after every epoch."""

    def __init__(self) -> None:
        self.epochs: list[dict[str, torch.Tensor]] = []

    def on_epoch(self, run, epoch):
        self.epochs.append({name: value.clone() for name, value in run.model.state_dict().items()})


def test_the_first_of_the_best_epochs_is_kept_with_the_weights_that_were_validated(monkeypatch):
    chosen, kept = small(), Keeps()
    data = small_dataset(chosen)
    scores = iter([0.5, 0.3, 0.4, 0.3, 0.6])

    def scored(learner, split):
        return next(scores) if split == "val" else evaluate(learner, split)

    monkeypatch.setattr(run_module, "evaluate", scored)
    run = train(chosen, data=data, device="cpu", callbacks=[kept])
    assert (run.record.best.epoch, run.record.best.val) == (1, 0.3)
    for name, value in run.model.state_dict().items():
        assert torch.equal(value, kept.epochs[1][name]), name
    assert run.record.best.test == evaluate(run.learner, "test")


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_metrics_are_computed_in_float32_whatever_training_uses(precision):
    chosen = small(epochs=1)
    data = small_dataset(chosen)
    before = torch.get_float32_matmul_precision()
    seen = set()

    def look(module, inputs):
        seen.add((module.training, torch.get_float32_matmul_precision(), torch.is_autocast_enabled("cpu")))

    try:
        learner = make_learner(make_fabric("cpu", precision), build_model(chosen.model), data, chosen)
        learner.model.kernel.register_forward_pre_hook(look)
        learner.wrapped.train()
        for _ in eager_losses(learner):
            pass
        value = evaluate(learner, "val")
        assert seen == {(True, "high", precision == "bf16"), (False, "highest", False)}
        exact = make_learner(make_fabric("cpu", "32"), build_model(chosen.model), data, chosen)
        exact.model.load_state_dict(learner.model.state_dict())
        assert evaluate(exact, "val") == value
    finally:
        torch.set_float32_matmul_precision(before)
