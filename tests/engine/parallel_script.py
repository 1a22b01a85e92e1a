"""Trains a small network; test_parallel.py runs it in one process and, with torchrun, in several."""

import sys
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from small_data import small_dataset

from ckgconv import recipe, train

name, folder = sys.argv[1], Path(sys.argv[2])
chosen = recipe(name)
kernel = replace(chosen.model.kernel, dropout=0.0, mlp_dropout=0.0)
model = replace(chosen.model, width=8, blocks=2, steps=3, kernel=kernel, dropout=0.0)
chosen = replace(chosen, model=model, training=replace(chosen.training, epochs=2, warmup_epochs=0, batch_size=5))
train(chosen, data=small_dataset(chosen, graphs=42), folder=folder, device="cpu", precision="64")
