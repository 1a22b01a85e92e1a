"""Trains on samples of one graph; test_sampling.py runs it in one process and, with torchrun, in two."""

import sys
from dataclasses import replace
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))

from large_data import large_recipe

from ckgconv import train
from ckgconv.data.packed import from_arrays
from ckgconv.recipe import SamplingRecipe

RINGS, SIZE = 24, 7  # batches of 8 seeds
kind, folder = sys.argv[1], Path(sys.argv[2])
ring = torch.stack([torch.arange(SIZE), (torch.arange(SIZE) + 1) % SIZE])
offset = SIZE * torch.arange(RINGS).repeat_interleave(SIZE)
one_way = ring.repeat(1, RINGS) + offset
x = torch.rand(RINGS * SIZE, 6, generator=torch.Generator().manual_seed(0))
data = from_arrays(
    {
        "num_nodes": torch.tensor([RINGS * SIZE]),
        "num_edges": torch.tensor([2 * RINGS * SIZE]),
        "edge_index": torch.cat([one_way, one_way.flip(0)], dim=1),
        "x": x,
        "y": (x[:, 0] * 2.999).long(),
        "node_split": torch.tensor([0, 1, 2, -1, -1, -1, -1]).repeat(RINGS),  # one training node in each ring
    }
)
sampling = SamplingRecipe(kind, batch_nodes=8, fanouts=(100,), parts=24)
chosen = large_recipe(sampling, epochs=3 if kind == "neighbours" else 8, support=1, steps=2)
chosen = replace(chosen, training=replace(chosen.training, learning_rate=1e-2))
if kind == "parts":  # one node to validate: the second process has none
    split = data.node_split.clone()
    split[(split == 1).nonzero()[1:]] = -1
    data = replace(data, node_split=split)
train(chosen, data=data, folder=folder, device="cpu", precision="64")
