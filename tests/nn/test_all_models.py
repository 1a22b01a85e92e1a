"""What every model does, whatever it computes: symmetry, batches, padding, learning, resuming, export, parameters.

The suite walks `MODELS`: a new kind of model enters it with a line in `SMALL`.
"""

import copy
import io
import math
from dataclasses import replace

import pytest
import torch
from graphs_for_tests import molecule, molecules
from hypothesis import given, settings
from hypothesis import strategies as st
from interruption import Interruption, StopAfter
from small_data import padded_and_plain, small_dataset
from small_models import CASES, SMALL, of_recipe, signed
from torch_geometric.data import Batch, Data

from ckgconv import train
from ckgconv.engine.resume import CheckpointBudget
from ckgconv.nn.export import export_model
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import MODELS, build_model
from ckgconv.recipe import MessagePassingRecipe, ModelRecipe

every_model = pytest.mark.parametrize("small", CASES)
# The signs of eigenvectors, and their choice where eigenvalues coincide, are arbitrary: so are the results.
invariant_model = pytest.mark.parametrize("small", [case for case in CASES if not signed(case.values[0])])
TOLERANCE = {"rtol": 0, "atol": 1e-10}


def network(small: ModelRecipe) -> GraphModel:
    """In float64, with parameters and running statistics that no initialisation has."""
    model = build_model(small).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.3 * torch.randn_like(parameter)
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer += 0.3 * torch.rand_like(buffer)
    return model


def renumbered(data: Data, order: torch.Tensor) -> Data:
    """The same graph with its nodes in another order, and its edges in any."""
    shuffle = torch.randperm(data.edge_index.shape[1])
    edges = order.argsort()[data.edge_index][:, shuffle]
    return Data(x=data.x[order], edge_index=edges, edge_attr=data.edge_attr[shuffle], y=data.y)


@pytest.mark.parametrize("kind", MODELS)
def test_every_kind_is_in_this_suite(kind):
    assert SMALL.get(kind), (
        f"No small recipe of kind {kind!r}: add one to SMALL in tests/small_models.py, of width 8 and 2 blocks, for "
        f"every choice that computes something else."
    )
    for small in SMALL[kind].values():
        assert small.kind == kind


def test_every_layer_of_message_passing_is_in_this_suite():
    hints = MessagePassingRecipe.__annotations__["layer"].__args__
    assert set(hints) <= set(SMALL["message_passing"])


@invariant_model
@given(st.integers(1, 14), st.integers(0, 2**31))
@settings(max_examples=5)
@pytest.mark.usefixtures("double")
def test_the_numbering_of_nodes_does_not_matter(small, nodes, seed):
    torch.manual_seed(seed)
    model, data, order = network(small).eval(), molecule(nodes, seed), torch.randperm(nodes)
    moved = renumbered(data, order)
    torch.testing.assert_close(model(moved), model(data), **TOLERANCE)
    states = model.node_states(model.prepare(data))
    torch.testing.assert_close(model.node_states(model.prepare(moved)), states[order], **TOLERANCE)


@every_model
@given(st.lists(st.integers(1, 12), min_size=1, max_size=5), st.integers(0, 2**31))
@settings(max_examples=5)
@pytest.mark.usefixtures("double")
def test_other_graphs_of_a_batch_do_not_matter_in_evaluation(small, sizes, seed):
    torch.manual_seed(seed)
    model = network(small).eval()
    graphs = [molecule(size, seed + place) for place, size in enumerate(sizes)]
    alone = torch.cat([model(graph) for graph in graphs])
    torch.testing.assert_close(model(Batch.from_data_list(graphs)), alone, **TOLERANCE)


@every_model
@pytest.mark.usefixtures("double")
def test_padding_changes_nothing(small):
    model = network(small)
    wide, batch = padded_and_plain(model, torch.tensor([2, 0, 3]))
    torch.testing.assert_close(model.eval()(wide)[:3], model(batch), **TOLERANCE)
    if signed(small):
        assert torch.isfinite(model.train()(wide)).all()  # signs are drawn: no two results are equal
        return
    results = []
    for given_batch in (wide, batch):
        copied = copy.deepcopy(model).train()
        prediction = copied(given_batch)[:3]
        gradients = torch.autograd.grad(prediction.sin().sum(), list(copied.parameters()), allow_unused=True)
        results.append([prediction, *gradients, *copied.buffers()])
    for padded, plain in zip(*results, strict=True):
        assert (padded is None) == (plain is None)
        if plain is not None:
            torch.testing.assert_close(padded, plain, rtol=1e-9, atol=1e-9)


@every_model
@pytest.mark.usefixtures("double")
def test_graphs_without_nodes_change_no_other(small):
    model = network(small).eval()
    empty = Data(x=torch.zeros(0, 1).long(), edge_index=torch.zeros(2, 0).long(), edge_attr=torch.zeros(0, 1).long())
    one, other = molecule(5, 0), molecule(6, 1)
    del one.y, other.y
    found = model(Batch.from_data_list([empty, one, empty, other, empty]))
    torch.testing.assert_close(found[[1, 3]], model(Batch.from_data_list([one, other])), **TOLERANCE)
    assert torch.isfinite(found).all()


@every_model
@pytest.mark.usefixtures("double")
def test_a_node_with_an_empty_support_receives_nothing(small):
    model, data = network(small).eval(), molecule(6, 0)
    data.support_index = data.edge_index[:, (data.edge_index != 0).all(0)]
    prediction = model(data)
    assert torch.isfinite(prediction).all()
    gradients = torch.autograd.grad(prediction.sum(), list(model.parameters()), allow_unused=True)
    assert all(torch.isfinite(gradient).all() for gradient in gradients if gradient is not None)


@every_model
def test_overfits_four_graphs(small):
    torch.manual_seed(3)
    model = build_model(replace(small, width=16)).train()
    data = molecules(6, 7, 8, 9, dtype=torch.float32)
    batch = model.prepare(data)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2)
    first = None
    for _ in range(300):
        loss = (model(batch).squeeze(-1) - data.y).abs().mean()
        first = loss.item() if first is None else first
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss < 0.1 * first:
            return
    pytest.fail(f"the loss fell only from {first} to {loss.item()}")


@every_model
def test_trains_and_resumes_bit_for_bit(small, tmp_path, monkeypatch):
    monkeypatch.setattr(CheckpointBudget, "share", math.inf)
    dropout = {name: 0.2 for name in ("dropout", "drop_path") if hasattr(small, name)}
    chosen = of_recipe(replace(small, **dropout))
    data = small_dataset(chosen, graphs=9)
    whole = train(chosen, data=data, device="cpu")
    assert len(whole.record.epochs) == 2
    assert math.isfinite(whole.record.best.test)
    with pytest.raises(Interruption):
        train(chosen, data=data, folder=tmp_path / "run", device="cpu", watcher=StopAfter(2))
    resumed = train(chosen, data=data, folder=tmp_path / "run", device="cpu", resume=True)
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, resumed.model.state_dict()[name]), name
    assert resumed.record.best == whole.record.best


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning", "ignore::FutureWarning")
@every_model
@pytest.mark.usefixtures("double")
def test_exported_with_free_sizes_saved_and_loaded(small):
    model = network(small).eval()
    program = export_model(model, molecules(5, 8, 11))
    if small is next(iter(SMALL[small.kind].values())):  # once for each kind, since it takes a second
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        program = torch.export.load(file)
    for data in (molecules(3, 9, 14, 6, seed=4), molecules(7), molecules(1)):
        torch.testing.assert_close(program.module()(model.prepare(data)), model(data), **TOLERANCE)


@every_model
def test_parameters_are_counted_reset_and_copied(small):
    model, data = build_model(small), molecules(5, 6, dtype=torch.float32)
    total = sum(parameter.numel() for parameter in model.parameters())
    assert sum(model.parameters_by_component().values()) == total
    assert all(parameter.dtype == torch.float32 for parameter in model.parameters())
    with torch.no_grad():
        for value in model.state_dict().values():
            if value.is_floating_point():
                value.fill_(7)
    torch.manual_seed(1)
    model.reset_parameters()
    left = [name for name, value in model.named_parameters() if (value == 7).all()]
    assert not left, f"{left} are not reset"
    other = build_model(small)
    other.load_state_dict(model.state_dict())
    assert torch.equal(model.eval()(data), other.eval()(data))


@every_model
def test_in_float64_as_in_float32_and_the_input_is_left_alone(small):
    model, data = build_model(small).eval(), molecules(5, 8)
    before = {name: value.clone() for name, value in data.to_dict().items() if torch.is_tensor(value)}
    wide = copy.deepcopy(model).double()
    found = wide(data)
    assert found.dtype == torch.float64
    torch.testing.assert_close(found.float(), model(data), rtol=1e-4, atol=1e-4)
    assert before.keys() == {name for name, value in data.to_dict().items() if torch.is_tensor(value)}
    assert all(torch.equal(data[name], value) for name, value in before.items())
