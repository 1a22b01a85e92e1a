"""CKGCN: gradients, sparse = dense, names, initialisation, refusals, compile; the rest is in `test_all_models`."""

import copy
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from golden import small_recipe
from graphs_for_tests import molecule, molecules, random_edges
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck
from torch_geometric.data import Batch, Data

from ckgconv import CKGCN, RECIPES, CKGConv, InputError, recipe

pytestmark = pytest.mark.usefixtures("double")

VARIANTS = {
    "rrwp": ("global", "rrwp"),
    "sparse": ("sparse_global", "rrwp"),
    "hops": (2, "rrwp"),
    "spd": ("global", "spd"),
    "rd": ("global", "rd"),
    "pair_rwse": ("global", "pair_rwse"),
}


def network(variant: str = "rrwp", **changes) -> CKGCN:
    model = CKGCN(replace(small_recipe("zinc", *VARIANTS[variant]), **changes)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        for buffer in model.buffers():
            buffer += 0.3 * torch.rand_like(buffer)
    return model


@pytest.mark.parametrize("variant", VARIANTS)
def test_gradcheck_through_the_whole_network(variant):
    model = network(variant, width=4).train()
    batch = model.prepare(molecules(3, 5, 4))
    names = [name for name, _ in model.named_parameters()]

    def run(*values):
        return torch.func.functional_call(model, dict(zip(names, values, strict=True)), (batch,))

    assert gradcheck(run, tuple(model.parameters()), fast_mode=True)


@given(
    st.lists(st.integers(5, 60), min_size=1, max_size=4),
    st.integers(0, 6),
    st.sampled_from(["output", "coordinates", "none"]),
    st.sampled_from(["sum", "concatenate"]),
    st.sampled_from(["none", "softmax", "softplus"]),
    st.integers(0, 2**31),
)
def test_sparse_global_form_is_exact(sizes, steps, scaler, combine, constraint, seed):
    torch.manual_seed(seed)
    kernel = replace(small_recipe("zinc", "global", "rrwp").kernel, constraint=constraint)
    options = dict(steps=steps + 1, degree_scaler=scaler, combine=combine, kernel=kernel)
    dense = network("rrwp", **options).train()
    assert_sparse_equals_dense(dense, molecules(*sizes, seed=seed % 1000))


@pytest.mark.parametrize("nodes", [5, 100, 300])
def test_sparse_global_form_is_exact_on_larger_graphs(nodes):
    assert_sparse_equals_dense(network("rrwp").train(), molecules(nodes, 7, seed=nodes))


def assert_sparse_equals_dense(dense: CKGCN, data: Batch) -> None:
    """Forward, backward and running statistics, BatchNorm in training mode."""
    sparse = CKGCN(replace(dense.recipe, support="sparse_global")).double().train()
    sparse.load_state_dict(dense.state_dict())
    results = []
    for model in (dense, sparse):
        prediction = model(data)
        loss = (prediction.squeeze(-1) - data.y).abs().mean()
        gradients = torch.autograd.grad(loss, list(model.parameters()), allow_unused=True)
        results.append([prediction, *gradients, *model.buffers()])
    for one, other in zip(*results, strict=True):
        if one is not None:
            # Deep random networks amplify rounding with the size of their values.
            scale = max(1.0, one.abs().max().item())
            torch.testing.assert_close(one / scale, other / scale, rtol=0, atol=1e-10)


def test_training_step_on_a_path_of_20000_nodes_fits_in_4_gb():
    """n² pairs with 9 channels would need 14.4 GB for their coordinates alone; a separate process is measured."""
    script = Path(__file__).parents[2] / "benchmarks" / "long_path.py"
    done = subprocess.run([sys.executable, script, "--json"], capture_output=True, text=True, check=True)
    report = json.loads(done.stdout)
    assert report["nodes"] == 20_000
    assert report["stored_pairs"] == 20_000 * 17 - 8 * 9
    assert report["finite_gradients"]
    assert report["peak_memory_mb"] < 4096


def test_state_dict_round_trip_and_readable_names():
    model, other = network(), network()
    other.load_state_dict(model.state_dict())
    data = molecules(6, 9)
    assert torch.equal(model.eval()(data), other.eval()(data))
    names = set(model.state_dict())
    assert {
        "node_encoder.tables.0.weight",
        "pair_stem.encoder.norm.scale",
        "kernel.blocks.0.linear_in.weight",
        "blocks.1.convolution.degree_scaler.theta1",
        "blocks.0.ffn_norm.running_mean",
        "head.linears.2.bias",
    } <= names


def test_reset_parameters_restores_the_published_initialisation():
    model = CKGCN.from_recipe("zinc")
    with torch.no_grad():
        for value in model.state_dict().values():
            value.fill_(7)
    model.reset_parameters()
    state = model.state_dict()
    assert not any((value == 7).all() for value in state.values())
    assert state["pair_stem.encoder.norm.scale"].eq(0.1).all()
    for name in ("kernel.linear.weight", "blocks.3.ffn_in.weight", "node_stem.mix.projection.weight"):
        assert state[name].std() == pytest.approx(0.02, rel=0.1)
    theta = torch.cat([state[f"blocks.{layer}.convolution.degree_scaler.theta2"] for layer in range(10)])
    assert theta.std() == pytest.approx(65**-0.5, rel=0.1)
    xavier = state["blocks.0.convolution.projection.weight"].std()
    assert xavier == pytest.approx((2 / 128) ** 0.5, rel=0.1)
    assert state["kernel.linear.bias"].abs().max() <= 1 / 8
    assert state["node_encoder.tables.0.weight"].std() == pytest.approx(1, rel=0.1)
    assert CKGCN.from_recipe("peptides-func").state_dict()["pair_stem.encoder.norm.scale"].eq(1).all()


def batch_for(name: str, dtype: torch.dtype = torch.float64) -> Data:
    """A small batch with the attributes a recipe reads."""
    model = recipe(name).model
    sizes = torch.tensor([6, 9])
    edges = torch.cat([random_edges(6, 8, 0), random_edges(9, 12, 1) + 6], dim=1)

    def attributes(kind, rows, position=0):
        if kind.kind == "linear":
            return torch.randn(rows, kind.sizes[0] - position, dtype=dtype)
        if kind.kind in ("types", "molecule"):
            return torch.stack([torch.randint(size, (rows,)) for size in kind.sizes], dim=1)
        return None

    return Data(
        x=attributes(model.node, 15, model.position_channels),
        edge_index=edges,
        edge_attr=attributes(model.edge, edges.shape[1]),
        batch=torch.arange(2).repeat_interleave(sizes),
        pos=torch.rand(15, 2, dtype=dtype) if model.position_channels else None,
    )


@pytest.mark.parametrize("name", [name for name in RECIPES if recipe(name).model.kind == "ckgcn"])
def test_every_recipe_runs_forward_and_backward(name):
    chosen = recipe(name)
    model = CKGCN.from_recipe(replace(chosen, model=replace(chosen.model, blocks=2))).double()
    prediction = model(batch_for(name))
    rows = 15 if chosen.model.head.pooling == "none" else 2
    assert prediction.shape == (rows, chosen.model.head.outputs)
    prediction.square().sum().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    assert chosen.name == name


def test_support_and_kernels_of_the_users_own():
    model = network().eval()
    one, two = molecule(5, 0), molecule(6, 1)
    for graph in (one, two):
        pairs = torch.cat([graph.edge_index, torch.arange(graph.num_nodes).expand(2, -1)], dim=1)
        graph.support_index = torch.unique(pairs, dim=1)
    hops = CKGCN(replace(model.recipe, support=1)).double().eval()
    hops.load_state_dict(model.state_dict())
    batch = Batch.from_data_list([one, two])
    torch.testing.assert_close(model(batch), hops(molecules(5, 6)), rtol=0, atol=1e-12)
    own = CKGCN(model.recipe, kernels=[torch.nn.Linear(8, 8), torch.nn.Sequential(torch.nn.Linear(8, 8))]).double()
    own.reset_parameters()
    own(molecules(5, 6)).sum().backward()
    assert own.kernel.layers[1][0].weight.grad is not None
    with pytest.raises(InputError, match="1 kernels were given for 2 blocks"):
        CKGCN(model.recipe, kernels=[torch.nn.Linear(8, 8)])


def test_typos_in_a_recipe_are_refused():
    base = small_recipe("zinc", "global", "rrwp")
    for change in (dict(degree_scaler="both"), dict(norm="none"), dict(width="wide"), dict(blocks=2.5)):
        with pytest.raises(InputError, match=next(iter(change))):
            CKGCN(replace(base, **change))
    with pytest.raises(InputError, match=r"recipe.head.kind is 'linear'"):
        CKGCN(replace(base, head=replace(base.head, kind="linear")))


EMPTY = Data(x=torch.zeros(0, 1).long(), edge_index=torch.zeros(2, 0).long(), edge_attr=torch.zeros(0, 1).long())


@pytest.mark.parametrize("encoding", ["rrwp", "spd", "rd", "pair_rwse", "heat"])
@pytest.mark.parametrize("support", ["global", "sparse_global", 2])
def test_graphs_without_nodes_have_predictions_and_change_no_other(encoding, support):
    if support == "sparse_global" and encoding != "rrwp":
        return
    base = small_recipe("zinc", support, "rrwp")
    model = CKGCN(replace(base, encoding=encoding, steps=3, node_steps=3)).double()
    one, other = molecule(5, 0), molecule(6, 1)
    del one.y, other.y
    without = Batch.from_data_list([one, other])
    among = Batch.from_data_list([EMPTY, one, EMPTY, other, EMPTY])
    results = []
    for batch, real in ((without, [0, 1]), (among, [1, 3])):
        copied = copy.deepcopy(model)
        prediction = copied(batch)
        assert prediction.shape == (batch.num_graphs, 1)
        # The head reads zeros for a graph without nodes, so only real graphs have a gradient in the other parts.
        gradients = torch.autograd.grad(prediction[real].sum(), copied.parameters())
        results.append([prediction[real], *gradients, *(buffer.clone() for buffer in copied.buffers())])
        if batch is among:
            pooled = copied.embed(copied.prepare(batch))
            assert pooled[[0, 2, 4]].eq(0).all()
            torch.testing.assert_close(prediction[[0, 2, 4]], copied.read_out(torch.zeros_like(pooled[:3])))
    for expected, found in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("training", [True, False])
def test_batches_of_empty_graphs_alone(training):
    model = network().train(training)
    zeros = model.read_out(torch.zeros(1, model.recipe.width).double())
    torch.testing.assert_close(model(Batch.from_data_list([EMPTY, EMPTY])), zeros.expand(2, 1))
    torch.testing.assert_close(model(EMPTY), zeros)
    nothing = Data(**EMPTY.to_dict(), batch=torch.zeros(0, dtype=torch.int64))
    assert model(nothing).shape == (0, 1)
    assert all(torch.isfinite(buffer).all() for buffer in model.buffers())


def test_options_of_the_studies_run():
    base = small_recipe("zinc", "global", "rrwp")
    for change in (
        dict(norm="layer"),
        dict(kernel=replace(base.kernel, norm="layer")),
        dict(kernel=replace(base.kernel, norm="none", blocks=0)),
        dict(dropout=0.2, kernel=replace(base.kernel, dropout=0.5, mlp_dropout=0.2)),
        dict(edge=replace(base.edge, kind="none", sizes=())),
    ):
        CKGCN(replace(base, **change)).double()(molecules(5, 8)).sum().backward()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(x=torch.full((5, 1), 21)), ["x[:, 0] contains 21", "0 … 20"]),
        (dict(x=torch.zeros(5, 2).long()), ["x has shape [5, 2]", "[5, 1]"]),
        (dict(x=torch.zeros(5, 1)), ["x[:, 0]", "float"]),
        (dict(x=None, num_nodes=5), ["data has no x"]),
        (dict(edge_attr=None), ["data has no edge_attr"]),
        (dict(edge_attr=torch.full((10, 1), -1)), ["edge_attr[:, 0] contains -1"]),
        (dict(edge_attr=torch.ones(3, 1).long()), ["edge_attr has shape [3, 1]"]),
        (dict(edge_index=torch.full((2, 10), 9)), ["edge_index contains 9"]),
        (dict(edge_index=None), ["data has no edge_index"]),
        (dict(x=torch.zeros(0, 1).long(), edge_attr=torch.zeros(10, 1).long()), ["empty (0 nodes)", "10 edges"]),
    ],
)
def test_bad_input_is_refused_with_a_sentence(change, words):
    good = dict(x=torch.zeros(5, 1).long(), edge_index=random_edges(5, 5, 0), edge_attr=torch.ones(10, 1).long())
    network()(Data(**good))
    with pytest.raises(InputError) as refusal:
        network()(Data(**{**good, **change}))
    for word in words:
        assert word in str(refusal.value)


def test_bad_float_features_and_positions_are_refused():
    model = CKGCN.from_recipe("mnist").double()
    good = batch_for("mnist")
    for name, value, words in (
        ("x", good.x.float(), "float"),
        ("x", good.x * torch.nan, "nan"),
        ("pos", None, "no pos"),
        ("pos", good.pos[:, :1], "pos has shape"),
        ("pos", good.pos * torch.inf, "pos"),
        ("edge_attr", good.edge_attr * torch.nan, "edge_attr"),
    ):
        bad = good.clone()
        bad[name] = value
        with pytest.raises(InputError, match=words):
            model(bad)
    with pytest.raises(InputError, match="zero row"):
        CKGCN(replace(recipe("mnist").model, support="sparse_global"))


def test_unknown_recipe_names_the_nearest():
    with pytest.raises(InputError, match="did you mean zinc"):
        CKGCN.from_recipe("zinx")


def test_repr_names_the_encoding():
    assert "encoding='rrwp', steps=21, support='global'" in repr(CKGCN.from_recipe("zinc"))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_compile_agrees_with_eager():
    torch._dynamo.reset()
    model = network(blocks=1).eval()
    compiled = torch.compile(model)
    for data in (molecules(5, 8, 11), molecules(3, 9, 14, 6, seed=4)):
        torch.testing.assert_close(compiled(data), model(data), rtol=0, atol=1e-10)
    conv = CKGConv(4, 4, steps=3).eval()
    x, edges = torch.randn(6, 4), random_edges(6, 8, 0)
    torch.testing.assert_close(torch.compile(conv)(x, edges), conv(x, edges), rtol=0, atol=1e-10)
