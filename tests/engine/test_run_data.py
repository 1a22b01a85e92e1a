"""Targets that a loss cannot be trained on are refused before training, with the value and what to do."""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import InputError, predict_packed, recipe, train
from ckgconv.data.packed import PackedDataset
from ckgconv.graphs import pointer


def small(name):
    chosen = recipe(name)
    model = replace(chosen.model, width=8, blocks=1, steps=2)
    return replace(chosen, model=model, training=replace(chosen.training, epochs=1, warmup_epochs=0, batch_size=3))


@pytest.mark.parametrize(
    ("name", "change", "sentence"),
    [
        ("mnist", lambda y: y + 9, r"contains 1\d, but the model has classes 0 … 9"),
        ("mnist", lambda y: y - 12, "contains -[0-9]+, but the model has classes"),
        ("mnist", lambda y: y.float(), "needs one whole number per row"),
        ("pattern", lambda y: y + 1, "contains 2, but the model has classes 0 … 1"),
        ("zinc", lambda y: y.view(-1, 1).repeat(1, 2), "has 2 values per row, but model.head.outputs is 1"),
        ("zinc", lambda y: y / 0, "contains -?inf, but values are finite"),
        ("peptides-func", lambda y: y + 3, "contains [34], but labels are 0 or 1"),
        ("peptides-func", lambda y: y[:, :4], "has 4 values per row, but model.head.outputs is 10"),
        ("peptides-func", lambda y: y * 0, "in split 'val' that do not define the metric 'average_precision'"),
        ("zinc", lambda y: y * torch.nan, "has no known target in split 'train'"),
    ],
)
def test_wrong_targets_are_named(name, change, sentence, tmp_path):
    chosen = small(name)
    data = small_dataset(chosen)
    with pytest.raises(InputError, match=f"he data given in Python .*{sentence}"):
        train(chosen, data=replace(data, y=change(data.y)), device="cpu", folder=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "pooling", "sentence"),
    [
        ("zinc", "none", "has a row for each graph, but model.head.pooling is 'none': set it to 'sum' or 'mean'"),
        ("pattern", "mean", "has a row for each node, but model.head.pooling is 'mean': set it to 'none'"),
    ],
)
def test_rows_of_targets_are_those_that_the_head_predicts(name, pooling, sentence):
    chosen = small(name)
    data = small_dataset(chosen)
    head = replace(chosen.model.head, pooling=pooling)
    with pytest.raises(InputError, match=sentence):
        train(replace(chosen, model=replace(chosen.model, head=head)), data=data, device="cpu")


def test_classes_may_be_of_any_whole_type():
    chosen = small("mnist")
    data = small_dataset(chosen)
    train(chosen, data=replace(data, y=data.y.to(torch.uint8)), device="cpu")


def test_unknown_targets_pass():
    chosen = small("mnist")
    data = small_dataset(chosen)
    y = data.y.clone()
    y[data.train[0]] = -1
    train(chosen, data=replace(data, y=y), device="cpu")
    chosen = small("zinc")
    data = small_dataset(chosen)
    y = data.y.clone()
    y[data.train[0]] = torch.nan
    train(chosen, data=replace(data, y=y), device="cpu")


def test_graphs_without_nodes_are_trained_on_and_predicted(tmp_path):
    chosen = small("zinc")
    full = small_dataset(chosen)
    sizes, edges = full.node_ptr.diff(), full.edge_ptr.diff()
    # Before, between and after the others, in every split.
    places = torch.tensor([0, 1, 2, 9, 10, 11, 18, 18, 18])
    order = torch.cat([torch.arange(18), places - 0.5]).argsort(stable=True)
    empty = order >= 18
    data = PackedDataset(
        node_ptr=pointer(torch.cat([sizes, torch.zeros(9, dtype=torch.int64)])[order]),
        edge_ptr=pointer(torch.cat([edges, torch.zeros(9, dtype=torch.int64)])[order]),
        edge_index=full.edge_index,
        x=full.x,
        edge_attr=full.edge_attr,
        pos=None,
        y=torch.cat([full.y, torch.zeros(9, 1)])[order],
        **{name: torch.arange(27)[place::3] for place, name in enumerate(("train", "val", "test"))},
    )
    run = train(chosen, data=data, device="cpu", folder=tmp_path / "run")
    found = predict_packed(run, data)
    assert found.values.shape == (27, 1)
    assert torch.isfinite(found.values).all()
    assert found.embeddings[empty].eq(0).all()
    assert found.embeddings[~empty].ne(0).any(-1).all()
    torch.testing.assert_close(found.values[~empty], predict_packed(run, full).values)
