"""Every array recorded from the published GRIT, to 1e-9 in float64, on every available device. Covers
`ckgconv.nn.attention`.
"""

import copy
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden import NORM_FIELDS, recorded
from torch import Tensor
from torch_geometric.data import Data

from ckgconv import recipe
from ckgconv.backends import accelerate, why_not_fused
from ckgconv.engine.learning_rate import learning_rate
from ckgconv.engine.optimizers import optimizer_of
from ckgconv.engine.step import clip_gradients
from ckgconv.nn.grit import GRIT
from ckgconv.recipe import TrainingRecipe
from ckgconv.tasks.losses import l1

pytestmark = pytest.mark.usefixtures("double")

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
EXACT, HEADS, CHANNELS, LAYERS = 1e-9, 4, 2, 2
ARRAYS = recorded("grit_zinc_small.npz")
TRAINING = TrainingRecipe("l1", "mae", epochs=10, warmup_epochs=0, batch_size=6)
OUTER = {
    "encoder.node_encoder.encoder.weight": "node_encoder.tables.0.weight",
    "encoder.edge_encoder.encoder.weight": "edge_encoder.tables.0.weight",
    "rrwp_abs_encoder.fc.weight": "node_position.weight",
    "rrwp_rel_encoder.fc.weight": "pair_position.projection.weight",
    **{f"post_mp.FC_layers.{n}.{part}": f"head.linears.{n}.{part}" for n in range(3) for part in ("weight", "bias")},
}
LINEARS = {
    "attention.Q": "attention.query",
    "attention.K": "attention.key",
    "attention.V": "attention.value",
    "attention.E": "attention.pair",
    "O_h": "projection",
    "O_e": "pair_projection",
    "FFN_h_layer1": "ffn_in",
    "FFN_h_layer2": "ffn_out",
}
NORMS = {"batch_norm1_h": "attention_norm", "batch_norm1_e": "pair_norm", "batch_norm2_h": "ffn_norm"}


def named(prefix: str) -> dict[str, Tensor]:
    """Recorded arrays of one prefix under our names."""
    found = {key[len(prefix) :]: torch.from_numpy(value) for key, value in ARRAYS.items() if key.startswith(prefix)}
    ours = {mine: found[theirs] for theirs, mine in OUTER.items() if theirs in found}
    for layer in range(LAYERS):
        theirs, mine = f"layers.{layer}.", f"blocks.{layer}."
        for one, other in LINEARS.items():
            fields = [field for field in ("weight", "bias") if f"{theirs}{one}.{field}" in found]
            ours |= {f"{mine}{other}.{field}": found[f"{theirs}{one}.{field}"] for field in fields}
        for one, other in NORMS.items():
            fields = [field for field in NORM_FIELDS if f"{theirs}{one}.{field}" in found]
            ours |= {f"{mine}{other}.{NORM_FIELDS[field]}": found[f"{theirs}{one}.{field}"][None] for field in fields}
        if (key := f"{theirs}deg_coef") in found:
            ours[f"{mine}degree_scaler.theta1"], ours[f"{mine}degree_scaler.theta2"] = found[key][0].unbind(1)
        if (key := f"{theirs}attention.Aw") in found:
            ours[f"{mine}attention.score"] = found[key].squeeze(-1).T
            ours[f"{mine}attention.mix"] = found[f"{theirs}attention.VeRow"].transpose(0, 1)
    return ours


def small_grit() -> GRIT:
    """The recorded network: width 8, two blocks, no dropout, five powers of the walk."""
    published = recipe("zinc-grit").model
    small = replace(published, width=8, blocks=LAYERS, heads=HEADS, steps=4, dropout=0.0, attention_dropout=0.0)
    model = GRIT(small)
    state = named("param/") | named("buffer/")
    assert set(state) == set(model.state_dict())
    model.load_state_dict(state)
    return model


def data() -> Data:
    inputs = {key[3:]: torch.from_numpy(value) for key, value in ARRAYS.items() if key.startswith("in/")}
    offset = inputs["node_ptr"][:-1].repeat_interleave(inputs["edge_ptr"].diff())
    return Data(
        x=inputs["atom"].long().view(-1, 1),
        edge_index=torch.stack([inputs["edge_sender"], inputs["edge_receiver"]]) + offset,
        edge_attr=inputs["bond"].long().view(-1, 1),
        batch=torch.arange(len(inputs["num_nodes"])).repeat_interleave(inputs["num_nodes"]),
        y=inputs["y"].double(),
    )


def observe(model: GRIT, given: Data) -> dict[str, Tensor]:
    """Every recorded intermediate of a forward pass."""
    seen: dict[str, Tensor] = {}
    handles = []

    def on(module, read):
        handles.append(module.register_forward_hook(lambda module, inputs, result: seen.update(read(inputs, result))))

    for layer, block in enumerate(model.blocks):
        if layer == 0:
            on(block, lambda inputs, result: {"h/0": inputs[0], "e/0": inputs[1]})

        def scores(inputs, result, block=block, layer=layer):
            attention, pairs = block.attention, inputs[2]
            score = (result[1].view(-1, HEADS, CHANNELS) * attention.score).sum(-1).clamp(-5, 5)
            alpha = attention.weights(result[1], pairs) / pairs.support_size[pairs.receiver].unsqueeze(-1)
            names = ("attn_out", "e_hat", "attn_score", "attn")
            return {f"{name}/{layer}": value for name, value in zip(names, (*result, score, alpha), strict=True)}

        on(block.attention, scores)
        on(block.projection, lambda inputs, result, layer=layer: {f"attn_proj/{layer}": result})
        on(block.attention_norm, lambda inputs, result, layer=layer: {f"mid/{layer}": result})
        on(block, lambda _, result, layer=layer: {f"h/{layer + 1}": result[0], f"e/{layer + 1}": result[1]})
    on(model.pool, lambda inputs, result: {"pooled": result})
    for level, linear in enumerate(model.head.linears[:-1]):
        on(linear, lambda inputs, result, level=level: {f"head_pre/{level}": result})
    seen["pred"] = model(given)
    for handle in handles:
        handle.remove()
    return seen


def close(ours: Tensor, theirs, where: str) -> None:
    ours, theirs = ours.cpu(), torch.as_tensor(theirs)
    assert ours.shape == theirs.shape, (where, ours.shape, theirs.shape)
    assert (ours - theirs).abs().max().item() <= EXACT, where


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", ["eval", "train"])
def test_every_intermediate(mode, device):
    model = small_grit().to(device).train(mode == "train")
    seen = observe(model, data().to(device))
    wanted = {key.removeprefix(f"{mode}/"): value for key, value in ARRAYS.items() if key.startswith(f"{mode}/")}
    loss = wanted.pop("loss")
    assert set(wanted) == set(seen)
    for name, theirs in wanted.items():
        close(seen[name], theirs, name)
    close(l1(seen["pred"].cpu(), data().y), loss, "loss")


def test_coordinates_of_pairs_and_nodes():
    model = small_grit()
    batch = model.prepare(data())
    close(batch.pairs.coordinates, ARRAYS["pe/rrwp_pair"], "pairs")
    close(model._node_part(batch.node_encoding), ARRAYS["pe/rrwp_node"], "nodes")


@pytest.mark.parametrize("device", DEVICES)
def test_running_statistics_gradients_and_optimiser_steps(device):
    model, given = small_grit().to(device).train(), data().to(device)
    model(given)
    for name, theirs in named("buffer_after_train_forward/").items():
        close(model.state_dict()[name], theirs, name)
    model = small_grit().to(device).train()
    adam, losses, norms, states = optimizer_of(model, TRAINING), [], [], []
    for step in range(3):
        adam.zero_grad()
        loss = l1(model(given), given.y)
        loss.backward()
        if step == 0:
            expected = named("grad/")
            for name, parameter in model.named_parameters():
                if name in expected:
                    close(parameter.grad, expected[name], name)
                else:  # the last state of the pairs is not read
                    assert name.startswith(f"blocks.{LAYERS - 1}.pair_")
                    assert parameter.grad is None
        losses.append(loss.detach())
        norms.append(clip_gradients(model, TRAINING))
        adam.step()
        states.append(copy.deepcopy(model.state_dict()))
    close(torch.stack(losses), ARRAYS["opt/loss_before_each_step"], "loss")
    close(torch.stack(norms), ARRAYS["opt/grad_norm_before_clipping"], "norm")
    for prefix, number in (("param_after_step1/", 0), ("param_after_step3/", 2), ("buffer_after_step3/", 2)):
        for name, theirs in named(prefix).items():
            close(states[number][name], theirs, name)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="Triton kernels need a GPU")
def test_recorded_numbers_by_the_attention_pass():
    """float32, which runs as Triton kernels, within the tolerance of the records for float32."""
    given = data().to("cuda")
    given.y = given.y.float()
    model = accelerate(small_grit().float().train(), "cuda")
    assert why_not_fused(model, "cuda") is None
    prediction = model(given)
    expected = torch.as_tensor(ARRAYS["train/pred"])
    assert (prediction.detach().cpu().double() - expected).abs().max() < 2e-5 * expected.abs().max()
    l1(prediction, given.y).backward()
    gradients = named("grad/")
    largest = max(float(value.abs().max()) for value in gradients.values())
    for name, parameter in model.named_parameters():
        if name in gradients:
            assert (parameter.grad.cpu().double() - gradients[name]).abs().max() < 1e-4 * largest, name


# What was published, and what `docs/models.md` says about the difference.
PARAMETERS = {
    "zinc": (473_473, 473_473),
    "mnist": (102_138, 102_138),
    "cifar10": (99_486, 99_486),
    "pattern": (477_953, 477_953),
    "cluster": (431_670, 432_206),
    "peptides-func": (443_434, 443_338),
    "peptides-struct": (449_579, 438_827),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters_by_component(name):
    with torch.device("meta"):
        model = GRIT.from_recipe(f"{name}-grit")
    assert sum(parameter.numel() for parameter in model.parameters()) == PARAMETERS[name][0]
    assert sum(model.parameters_by_component().values()) == PARAMETERS[name][0]


def test_where_published_parameters_of_peptides_differ():
    """There an atom has four chiralities, one less than here; on Peptides-struct K = 17 and one layer of the head."""
    counts = {}
    for name in ("peptides-func", "peptides-struct"):
        published = recipe(f"{name}-grit").model
        first, second, *rest = published.node.sizes
        node = replace(published.node, sizes=(first, second - 1, *rest))
        head = replace(published.head, layers=1)
        with torch.device("meta"):
            model = GRIT(replace(published, node=node, head=head, steps=16))
        counts[name] = sum(parameter.numel() for parameter in model.parameters())
    assert counts == {name: PARAMETERS[name][1] for name in counts}


def test_the_page_of_models_has_these_parameters():
    page = (Path(__file__).parents[1] / "docs" / "models.md").read_text(encoding="utf-8")
    for name, (ours, published) in PARAMETERS.items():
        assert re.search(rf"\| `{name}-grit` \|.* {ours:,} \| {published:,} \|", page), name


def test_learning_rate_decays_to_zero():
    training = recipe("zinc-grit").training
    rates = [learning_rate(epoch, training) for epoch in range(training.epochs)]
    recorded_rates = recorded("schedule.npz")["grit_max2000_warm50_base1e-3/lr"]
    # The published warm-up starts from 10⁻⁶ of the rate, ours from 10⁻⁷: they differ by less than that.
    assert abs(torch.tensor(rates) - torch.as_tensor(recorded_rates)).max() <= 1e-7
