"""Every array recorded from the published model, to 1e-9 in float64."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from golden import Golden, observe, param_counts, recorded

from ckgconv import CKGCN, recipe
from ckgconv.engine.learning_rate import learning_rate
from ckgconv.engine.optimizers import optimizer_of
from ckgconv.engine.step import clip_gradients
from ckgconv.graphs import pack
from ckgconv.pairs import row_of
from ckgconv.pe import diagonal, rd, rrwp, rwse, spd
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import l1, weighted_binary

EXACT = 1e-9
MODELS = {
    "zinc": Golden("ckgcn_zinc_small.npz", "zinc"),
    "khop": Golden("ckgcn_khop_small.npz", "khop", support=2),
    "pattern": Golden("ckgcn_pattern_small.npz", "pattern"),
    "spd": Golden("ckgcn_pe_small.npz", "spd", encoding="spd"),
    "rd": Golden("ckgcn_pe_small.npz", "rd", encoding="rd"),
    "rwse": Golden("ckgcn_pe_small.npz", "rwse", encoding="pair_rwse"),
}
TRAINING = TrainingRecipe("l1", "mae", epochs=10, warmup_epochs=0, batch_size=6)


@pytest.fixture(params=MODELS)
def golden(request) -> Golden:
    return MODELS[request.param]


@pytest.fixture(autouse=True)
def _double():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def loss_of(golden: Golden, prediction, data):
    return (weighted_binary if golden.recipe.node.kind == "linear" else l1)(prediction, data.y)


def close(ours, theirs, tolerance=EXACT, where=""):
    """Refuse an error above the tolerance."""
    theirs = torch.as_tensor(theirs)
    assert ours.shape == theirs.shape, (where, ours.shape, theirs.shape)
    worst = (ours - theirs).abs().max().item()
    assert worst <= tolerance, (where, worst)


def dense(golden: Golden, model: CKGCN, data, values):
    """Values of the stored pairs in the dense order of the files, zero elsewhere."""
    if golden.recipe.support == "global":
        return values
    graphs = pack(data.edge_index, data.batch)
    pairs = model.prepare(data).pairs
    everything = rrwp(graphs, 1)
    row, _ = row_of(pairs.receiver, pairs.sender, everything, graphs.num_nodes)
    return values.new_zeros(everything.receiver.shape[0], values.shape[1]).index_copy(0, row, values)


def compared(golden: Golden, model: CKGCN, data, seen, mode):
    """The name, our value and the recorded value of each intermediate of a mode."""
    for key, theirs in golden.arrays.items():
        name = key.removeprefix(f"{mode}/")
        if name in (key, "loss"):
            continue
        on_pairs = name.startswith(("pair_", "psi", "e0"))
        yield key, dense(golden, model, data, seen[name]) if on_pairs else seen[name], theirs


@pytest.mark.parametrize("mode", ["eval", "train"])
def test_every_intermediate(golden, mode):
    data = golden.data(torch.float64)
    model = golden.model(torch.float64).train(mode == "train")
    seen = observe(model, lambda: model(data))
    intermediates = list(compared(golden, model, data, seen, mode))
    assert len(intermediates) >= 19
    for key, ours, theirs in intermediates:
        close(ours, theirs, where=key)
    close(loss_of(golden, seen["pred"], data), golden.arrays[f"{mode}/loss"], where="loss")


def test_running_statistics_after_one_forward(golden):
    model = golden.model(torch.float64).train()
    model(golden.data(torch.float64))
    expected = golden.named("buffer_after_train_forward/")
    assert set(expected) == {name for name, _ in model.named_buffers()}
    for name, buffer in model.named_buffers():
        close(buffer, expected[name], where=name)


def test_gradients(golden):
    data, model = golden.data(torch.float64), golden.model(torch.float64).train()
    loss_of(golden, model(data), data).backward()
    expected = golden.named("grad/")
    assert len(expected) >= len(list(model.parameters())) - 1
    for name, parameter in model.named_parameters():
        if name in expected:
            close(parameter.grad, expected[name], where=name)
        else:  # read only for pairs of different components, which these molecules do not have
            assert name == "pair_stem.encoder.unreachable"
            assert not parameter.grad.any()


def test_one_and_three_optimiser_steps(golden):
    data, model = golden.data(torch.float64), golden.model(torch.float64).train()
    adam = optimizer_of(model, TRAINING)
    losses, norms, states = [], [], []
    for _ in range(3):
        adam.zero_grad()
        loss = loss_of(golden, model(data), data)
        loss.backward()
        losses.append(loss.detach())
        norms.append(clip_gradients(model, TRAINING))
        adam.step()
        states.append(copy.deepcopy(model.state_dict()))
    close(torch.stack(losses), golden.arrays["opt/loss_before_each_step"], where="loss")
    close(torch.stack(norms), golden.arrays["opt/grad_norm_before_clipping"], where="norm")
    for prefix, state in (
        ("param_after_step1/", states[0]),
        ("param_after_step3/", states[2]),
        ("buffer_after_step3/", states[2]),
    ):
        for name, theirs in golden.named(prefix).items():
            ours = state[name]
            if name == "pair_stem.encoder.table.weight":  # our extra row for unreachable pairs
                ours, theirs = ours[:-1], theirs[:-1]
            close(ours, theirs, where=prefix + name)


def test_float32_within_the_recorded_tolerance(golden):
    torch.set_default_dtype(torch.float32)
    data, model = golden.data(torch.float32), golden.model(torch.float32)
    for mode, tolerance in (("eval", 1e-5), ("train", 2e-5)):
        model.train(mode == "train")
        seen = observe(model, lambda: model(data))
        for key, ours, theirs in compared(golden, model, data, seen, mode):
            worst = np.abs(ours.detach().double().numpy() - theirs).max()
            assert worst <= tolerance * np.abs(theirs).max(), (key, worst)
    model = golden.model(torch.float32).train()
    loss_of(golden, model(data), data).backward()
    expected = golden.named("grad/")
    largest = max(value.abs().max().item() for value in expected.values())
    for name, parameter in model.named_parameters():
        if name in expected:
            close(parameter.grad.double(), expected[name], tolerance=2e-5 * largest, where=name)


@pytest.mark.parametrize("name", ["zinc", "khop", "pattern"])
def test_random_walk_encoding(name):
    golden = MODELS[name]
    data = golden.data(torch.float64)
    graphs = pack(data.edge_index, data.batch)
    coordinates = rrwp(graphs, 5)
    close(coordinates.values, golden.arrays["pe/rrwp_pair"], 1e-12)
    close(diagonal(coordinates), golden.arrays["pe/rrwp_node"], 1e-12)
    assert (coordinates.values.any(-1).numpy() == golden.arrays["pe/rrwp_reached"]).all()
    assert (graphs.degree(torch.float64).numpy() == golden.inputs["degree"]).all()


def test_two_hop_support():
    golden = MODELS["khop"]
    data = golden.data(torch.float64)
    pairs = golden.model(torch.float64).prepare(data).pairs
    theirs = np.stack([golden.arrays["support/receiver"], golden.arrays["support/sender"]])
    ours = torch.stack([pairs.receiver, pairs.sender]).numpy()
    assert (ours == theirs[:, np.lexsort(theirs[::-1])]).all()
    assert (dense_mask(data, pairs) == golden.arrays["support/mask"]).all()
    assert (pairs.support_size.numpy() == golden.arrays["support/kernel_size"]).all()


def dense_mask(data, pairs) -> np.ndarray:
    graphs = pack(data.edge_index, data.batch)
    everything = rrwp(graphs, 1)
    return row_of(everything.receiver, everything.sender, pairs, graphs.num_nodes)[1].numpy()


def test_distances_and_return_probabilities():
    raw = recorded("ckgcn_pe_small.npz")
    data = MODELS["spd"].data(torch.float64)
    graphs = pack(data.edge_index, data.batch)
    assert (spd(graphs, 21).values.numpy() == raw["raw/spd_pair"]).all()
    assert (spd(graphs, 5).values.numpy() == raw["raw/spd_pair_max5"]).all()
    close(rd(graphs).values.squeeze(-1), raw["raw/rd_pair"])
    close(rwse(graphs, 20), raw["raw/rwse_node"], 1e-12)


@pytest.mark.parametrize(
    ("recipe_name", "recorded_name"),
    [
        ("zinc", "max2000_warm50_base1e-3_min1e-6"),
        ("mnist", "max200_warm5_base1e-3_min1e-4"),
        ("cifar10", "max200_warm5_base1e-3_min1e-4"),
        ("peptides-struct", "max200_warm5_base1e-3_min1e-4"),
        ("peptides-func-printed", "max200_warm5_base1e-3_min1e-4"),
        ("pattern", "max200_warm10_base1e-3_min1e-4"),
        ("cluster", "max200_warm10_base1e-3_min1e-4"),
        ("peptides-func", "max200_warm10_base1e-3_min1e-4"),
    ],
)
def test_schedule(recipe_name, recorded_name):
    training = recipe(recipe_name).training
    rates = [learning_rate(epoch, training) for epoch in range(training.epochs + 1)]
    schedule = recorded("schedule.npz")
    np.testing.assert_allclose(rates[:-1], schedule[f"{recorded_name}/lr"], rtol=0, atol=1e-15)
    np.testing.assert_allclose(rates[-1], schedule[f"{recorded_name}/lr_after_last_epoch"], rtol=0, atol=1e-15)


def test_schedule_of_the_ablations():
    training = replace(recipe("zinc").training, min_learning_rate=1e-5)
    rates = [learning_rate(epoch, training) for epoch in range(training.epochs)]
    theirs = recorded("schedule.npz")["max2000_warm50_base1e-3_min1e-5/lr"]
    np.testing.assert_allclose(rates, theirs, rtol=0, atol=1e-15)


@pytest.mark.parametrize("name", param_counts())
def test_trainable_parameters_by_component(name):
    expected = {
        component: count["trainable"]
        for component, count in param_counts()[name]["components"].items()
        if count["trainable"]
    }
    renamed = {"edge_encoder": "pair_attribute_encoder", "kernels": "kernel_mlps"}
    model = CKGCN.from_recipe(name)
    ours = {renamed.get(key, key): count for key, count in model.parameters_by_component().items()}
    assert ours == expected
    assert sum(parameter.numel() for parameter in model.parameters()) == param_counts()[name]["trainable"]
