"""Small data sets with the attributes that a recipe reads."""

import torch
from torch import Tensor

from ckgconv import recipe as recipe_of
from ckgconv.backends.cuda.assembly import Capacity
from ckgconv.backends.cuda.batch import padded_batch, store_pairs
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.graphs import GraphBatch
from ckgconv.nn.graph_model import GraphModel
from ckgconv.recipe import AttributeRecipe, Recipe
from ckgconv.tasks.losses import LOSSES


def small_dataset(recipe: Recipe, graphs: int = 18, seed: int = 0, most: int = 14) -> PackedDataset:
    """Rings of up to `most` nodes with random chords, random attributes and targets of the recipe's kind.

    A third is in each split.
    """
    generator = torch.Generator().manual_seed(seed)
    model = recipe.model
    sizes = torch.randint(most - 5, most + 1, (graphs,), generator=generator)
    edges = []
    for size in sizes.tolist():
        ring = torch.stack([torch.arange(size), (torch.arange(size) + 1) % size])
        chords = torch.randint(size, (2, 3), generator=generator)
        chords = chords[:, (chords[0] - chords[1]).abs() > 1]
        one_way = torch.cat([ring, chords], dim=1)
        edges.append(torch.unique(torch.cat([one_way, one_way.flip(0)], dim=1), dim=1))
    nodes, count = int(sizes.sum()), sum(part.shape[1] for part in edges)

    def attributes(kind: AttributeRecipe, rows: int, position: int = 0):
        if kind.kind == "linear":
            return torch.rand(rows, kind.sizes[0] - position, generator=generator)
        if kind.kind in ("types", "molecule"):
            return torch.stack([torch.randint(size, (rows,), generator=generator) for size in kind.sizes], dim=1)
        return None

    arrays = {
        "num_nodes": sizes,
        "num_edges": torch.tensor([part.shape[1] for part in edges]),
        "edge_index": torch.cat(edges, dim=1),
        "x": attributes(model.node, nodes, model.position_channels),
        "edge_attr": attributes(model.edge, count),
        "pos": torch.rand(nodes, 2, generator=generator) if model.position_channels else None,
        "y": targets(recipe, graphs, nodes, generator),
        "graph_features": graph_features(model.graph_features, graphs, generator),
        **{f"{name}_idx": torch.arange(graphs)[place::3] for place, name in enumerate(("train", "val", "test"))},
    }
    return from_arrays({name: value for name, value in arrays.items() if value is not None})


def graph_features(channels: int, graphs: int, generator: torch.Generator) -> torch.Tensor | None:
    """[G, C], some of them unknown; None for no channels."""
    if not channels:
        return None
    values = torch.randn(graphs, channels, generator=generator)
    return values.where(values.abs() < 1.5, torch.nan)


def targets(recipe: Recipe, graphs: int, nodes: int, generator: torch.Generator) -> torch.Tensor:
    outputs = recipe.model.head.outputs
    rows = nodes if recipe.model.head.pooling == "none" else graphs
    kind = LOSSES[recipe.training.loss].targets
    if kind == "values":
        return torch.randn(rows, outputs, generator=generator)
    if kind == "labels":
        return torch.randint(2, (rows, outputs), generator=generator)
    return torch.arange(rows)[torch.randperm(rows, generator=generator)] % max(outputs, 2)


def padded_and_plain(model: GraphModel, numbers: Tensor) -> tuple[GraphBatch, GraphBatch]:
    """Graphs of a small ZINC with the given numbers, padded to a static capacity, and as they are."""
    data = small_dataset(recipe_of("zinc"))
    stored = store_pairs([model.prepare(data.batch(torch.arange(data.num_graphs)))])
    nodes = data.node_ptr.diff()[numbers]
    capacity = Capacity(4, int(nodes.sum()) + 3, int((nodes**2).sum()) + 5, 200, int(data.node_ptr.diff().max()))
    absent = torch.full((4 - len(numbers),), -1)
    padded, _ = padded_batch(data, stored, torch.cat([numbers, absent]), capacity, model.encoding, model.dtype)
    return padded, model.prepare(data.batch(numbers))
