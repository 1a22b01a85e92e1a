"""Batches that come again are prepared once, within a bound of memory, and change no result."""

from dataclasses import replace

import pytest
import torch
from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.data import from_pyg_masks
from ckgconv.engine import prepared
from ckgconv.engine.checkpoint import load
from ckgconv.nn.graph_model import GraphModel
from ckgconv.recipe import Recipe


def one_graph_recipe() -> Recipe:
    chosen = recipe("large-sbm")
    model = replace(chosen.model, width=8, head=replace(chosen.model.head, outputs=3))
    return replace(chosen, model=model, training=replace(chosen.training, epochs=3, warmup_epochs=0))


def one_graph():
    from torch_geometric.data import Data

    nodes = torch.arange(40)
    one_way = torch.cat([torch.stack([nodes, (nodes + jump) % 40]) for jump in (1, 7)], dim=1)
    masks = {f"{name}_mask": nodes % 3 == place for place, name in enumerate(("train", "val", "test"))}
    x = torch.rand(40, 6, generator=torch.Generator().manual_seed(0))
    return from_pyg_masks(Data(x=x, edge_index=torch.cat([one_way, one_way.flip(0)], dim=1), y=nodes % 3, **masks))


def many_graphs_recipe() -> Recipe:
    chosen = recipe("cluster")
    model = replace(chosen.model, width=8, blocks=2, steps=3)
    return replace(chosen, model=model, training=replace(chosen.training, epochs=3, warmup_epochs=0, batch_size=4))


CASES = [
    (one_graph_recipe, lambda chosen: one_graph(), 1),
    # Two batches to validate and two to test, the first training graph once, and its own batches in every epoch.
    (many_graphs_recipe, lambda chosen: small_dataset(chosen, graphs=18), 5 + 3 * 2),
]


@pytest.mark.parametrize(("make", "data_of", "expected"), CASES, ids=["one graph", "many graphs"])
def test_kept_batches_give_the_same_run_bit_for_bit(make, data_of, expected, tmp_path, monkeypatch):
    chosen = make()
    calls = []
    plain = GraphModel.prepare
    monkeypatch.setattr(GraphModel, "prepare", lambda model, data: calls.append(1) or plain(model, data))
    runs, counts = [], []
    for name, share in (("kept", prepared.SHARE), ("anew", 0.0)):
        monkeypatch.setattr(prepared, "SHARE", share)
        calls.clear()
        runs.append(train(chosen, data=data_of(chosen), device="cpu", folder=tmp_path / name))
        counts.append(len(calls))
    assert counts[0] == expected < counts[1]
    assert [entry.val for entry in runs[0].record.epochs] == [entry.val for entry in runs[1].record.epochs]
    assert [entry.train_loss for entry in runs[0].record.epochs] == [
        entry.train_loss for entry in runs[1].record.epochs
    ]
    kept, anew = (load(tmp_path / name / "best")[0] for name in ("kept", "anew"))
    assert all(torch.equal(value, anew[key]) for key, value in kept.items())


def test_no_more_is_kept_than_the_share_of_free_memory(monkeypatch):
    chosen = many_graphs_recipe()
    data = small_dataset(chosen, graphs=18)
    run = train(chosen, data=data, device="cpu")
    kept = run.learner.cache.batches
    sizes = [prepared.tensor_bytes(each) for each in kept.batches.values()]
    assert kept.held_bytes == sum(sizes) <= kept.most_bytes
    batch = next(iter(kept.batches.values())).batch
    assert prepared.tensor_bytes(next(iter(kept.batches.values()))) > batch.pairs.coordinates.nbytes
    most = 2 * max(sizes)
    monkeypatch.setattr(prepared, "free_bytes", lambda device: most / prepared.SHARE)
    bounded = train(chosen, data=data, device="cpu").learner.cache.batches
    assert bounded.most_bytes == most
    assert 0 < bounded.held_bytes <= most
    assert len(bounded.batches) < len(kept.batches)
