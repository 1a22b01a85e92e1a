"""A training loop of one's own around an accelerated CKGCN.

    python examples/own_loop.py --epochs 5 --limit 512
    python examples/own_loop.py --device cuda --epochs 20

The loop is ordinary torch: a loader, a loss, an optimiser. `accelerate` moves the model to the device and swaps in that
device's passes; parameters and state dict stay those of the plain model.
"""

import argparse
import sys
import time
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from ckgconv import CKGCN, InputError, recipe
from ckgconv.backends import accelerate, checked_device, why_not_fused
from ckgconv.data import PackedDataset, zinc


def graphs_of(data: PackedDataset, numbers: Tensor) -> list[Data]:
    """Single graphs, as a PyG loader wants them."""
    graphs = [data.batch(number.view(1)) for number in numbers]
    for graph in graphs:
        del graph.batch  # the loader writes its own
    return graphs


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device) -> float:
    """Mean training loss."""
    model.train()
    summed, count = 0.0, 0
    for batch in loader:
        batch = batch.to(device)
        optimizer.zero_grad()
        loss = nn.functional.l1_loss(model(batch).squeeze(-1), batch.y)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        summed, count = summed + float(loss.detach()) * batch.num_graphs, count + batch.num_graphs
    return summed / count


@torch.no_grad()
def mean_absolute_error(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    """Over all graphs of the loader."""
    model.eval()
    errors = [(model(batch.to(device)).squeeze(-1) - batch.y.to(device)).abs() for batch in loader]
    return float(torch.cat(errors).mean())


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description="Train a CKGCN on ZINC-12k in a loop of one's own.")
    options.add_argument("--device", default="cpu", help="cpu or cuda")
    options.add_argument("--epochs", type=int, default=5)
    options.add_argument("--limit", type=int, default=None, help="the first graphs of each split")
    options.add_argument("--batch-size", type=int, default=32)
    options.add_argument("--width", type=int, default=32)
    options.add_argument("--blocks", type=int, default=4)
    options.add_argument("--seed", type=int, default=0)
    return options


def main(arguments: list[str] | None = None) -> float:
    """Train, print a line per epoch, return the last validation error."""
    options = parser().parse_args(arguments)
    device = checked_device(options.device)
    torch.manual_seed(options.seed)
    model = CKGCN(replace(recipe("zinc").model, width=options.width, blocks=options.blocks))
    model = accelerate(model, device)
    print(why_not_fused(model, device) or f"fused passes on {device}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-5)
    data = zinc().limited(options.limit)
    training = DataLoader(graphs_of(data, data.train), batch_size=options.batch_size, shuffle=True)
    validation = DataLoader(graphs_of(data, data.val), batch_size=options.batch_size)
    error = float("nan")
    for epoch in range(options.epochs):
        start = time.perf_counter()
        loss = train_epoch(model, training, optimizer, device)
        error = mean_absolute_error(model, validation, device)
        print(f"epoch {epoch + 1}: loss {loss:.4f}, validation MAE {error:.4f}, {time.perf_counter() - start:.1f} s")
    return error


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
