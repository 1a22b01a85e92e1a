"""A graph of some hundred nodes, recipes that sample it, and learners without dropout, for tests of large graphs."""

from dataclasses import replace

import torch

from ckgconv import recipe
from ckgconv.data.packed import PackedDataset, from_arrays
from ckgconv.engine.learner import Learner
from ckgconv.engine.run import make_learner
from ckgconv.engine.setup import make_fabric
from ckgconv.nn.models import build_model
from ckgconv.recipe import AttributeRecipe, Recipe, SamplingRecipe


def large_dataset(nodes: int = 90, graphs: int = 1, edge_types: int = 0) -> PackedDataset:
    """Random edges, some parallel, one node without any; half of the nodes train, a quarter validates or tests."""
    generator = torch.Generator().manual_seed(1)
    one_way = torch.randint(nodes - 1, (2, 2 * nodes), generator=generator)
    one_way = torch.cat([one_way, one_way[:, :4]], dim=1)
    edges = torch.cat([one_way, one_way.flip(0)], dim=1)
    rows = nodes * graphs
    arrays = {
        "num_nodes": torch.full((graphs,), nodes),
        "num_edges": torch.full((graphs,), edges.shape[1]),
        "edge_index": edges.repeat(1, graphs),
        "x": torch.rand(rows, 6, generator=generator),
        "y": torch.randint(3, (rows,), generator=generator),
        "node_split": torch.tensor([0, 1, 0, 2]).repeat(rows)[:rows],
    }
    if edge_types:
        types = torch.randint(edge_types, (one_way.shape[1], 1), generator=generator)
        arrays["edge_attr"] = torch.cat([types, types]).repeat(graphs, 1)
    return from_arrays(arrays)


def large_recipe(sampling: SamplingRecipe, edge_types: int = 0, epochs: int = 2, **model) -> Recipe:
    chosen = recipe("large-sbm")
    edge = AttributeRecipe("types", (edge_types,)) if edge_types else chosen.model.edge
    head = replace(chosen.model.head, outputs=3)
    network = replace(chosen.model, width=8, head=head, edge=edge, **model)
    training = replace(chosen.training, epochs=epochs, warmup_epochs=0, sampling=sampling)
    return replace(chosen, model=network, training=training)


def learner_of(chosen: Recipe, data: PackedDataset, precision: str = "64") -> Learner:
    torch.manual_seed(5)
    return make_learner(make_fabric("cpu", precision), build_model(chosen.model), data, chosen)
