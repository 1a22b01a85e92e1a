"""MUTAG by ten folds: the recipe `mutag` and a GIN of PyG on the same folds, each epoch chosen by validation.

    python benchmarks/folds.py --data-dir data

GIN: five layers of width 32 with batch norms, sum pooling, Adam-like steps of 0.01 falling to a tenth, 200 epochs.
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GIN, global_add_pool

from ckgconv import recipe, train_folds


class GraphGIN(nn.Module):
    """Graphs → two logits."""

    def __init__(self, columns: int = 7, width: int = 32) -> None:
        super().__init__()
        self.layers = GIN(columns, width, num_layers=5, norm="batch_norm")
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Dropout(0.5), nn.Linear(width, 2))

    def forward(self, data: Data) -> Tensor:
        return self.head(global_add_pool(self.layers(data.x, data.edge_index), data.batch, data.num_graphs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-dir", type=Path, help="where mutag.npz is")
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    options = parser.parse_args()
    torch.set_num_threads(1)
    ours = recipe("mutag")
    gin = replace(ours, training=replace(ours.training, epochs=200, learning_rate=1e-2, min_learning_rate=1e-3))
    for seed in options.seeds:
        chosen = {"data": options.data_dir, "seed": seed, "device": "cpu"}
        for name, base, own in (("ckgcn", ours, {}), ("gin", gin, {"model": GraphGIN})):
            found = train_folds(base, options.folds, **chosen, **own)
            print(json.dumps({"network": name, "seed": seed, **found.to_json()}), flush=True)


if __name__ == "__main__":
    main()
