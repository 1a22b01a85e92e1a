import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from ckgconv import CKGCN, InputError
from ckgconv.data import load_packed, zinc


def test_zinc_counts():
    data = zinc()
    assert data.num_graphs == 12_000
    assert data.x.shape == (277_864, 1)
    assert data.edge_index.shape == (2, 597_970)
    assert [len(data.split(name)) for name in ("train", "val", "test")] == [10_000, 1_000, 1_000]
    target = data.y[data.train]
    assert target.mean().item() == pytest.approx(0.0153, abs=1e-4)
    assert target.min().item() == pytest.approx(-42.04, abs=0.01)


def test_batch_equals_pyg_collation():
    data = zinc()
    numbers = torch.tensor([5, 11_999, 5, 0])
    ours = data.batch(numbers)
    parts = []
    for number in numbers.tolist():
        nodes = slice(int(data.node_ptr[number]), int(data.node_ptr[number + 1]))
        edges = slice(int(data.edge_ptr[number]), int(data.edge_ptr[number + 1]))
        parts.append(
            Data(
                x=data.x[nodes],
                edge_index=data.edge_index[:, edges],
                edge_attr=data.edge_attr[edges],
                y=data.y[number : number + 1],
            )
        )
    theirs = Batch.from_data_list(parts)
    for name in ("x", "edge_index", "edge_attr", "y", "batch"):
        assert torch.equal(ours[name], theirs[name])
    assert CKGCN.from_recipe("zinc").eval()(ours).shape == (4, 1)


def test_bad_files_and_numbers_are_refused(tmp_path):
    with pytest.raises(InputError, match="graphs contains 12000"):
        zinc().batch(torch.tensor([12_000]))
    wrong = tmp_path / "wrong.npz"
    wrong.write_text("smiles,y")
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(wrong)
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(tmp_path / "absent.npz")
    np.savez(tmp_path / "half.npz", num_nodes=np.ones(1))
    with pytest.raises(InputError, match="lacks the arrays edge_index"):
        load_packed(tmp_path / "half.npz")
    np.savez(tmp_path / "code.npz", num_nodes=np.array([object()]))
    with pytest.raises(InputError, match="not a packed data set"):
        load_packed(tmp_path / "code.npz")
