"""What a trained CKGCN separates: CSL and EXP as classification, pairs of BREC and SR25 by contrast.

    contrast   minimise cos(f(G), f(H)), f(·) in R^16; f(G) = f(H) leaves it at 1, with a gradient of 0

Legend: G graphs, Q pairs of graphs.
"""

from dataclasses import replace

import torch
from torch import Tensor
from torch.nn import functional as F
from torch_geometric.data import Data

from ckgconv.data.expressiveness import GraphPairs
from ckgconv.data.packed import PackedDataset
from ckgconv.nn import CKGCN
from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, HeadRecipe
from ckgconv.studies.random_network import DistanceName, Measured, freeze_statistics, measure, network_recipe

WIDTH = 16
LEARNING_RATE = 1e-2
BATCH = 10
EXP_TEST = 0.2  # share of the pairs
# Training graphs whose statistics a trained classifier keeps.
SAMPLE = 100


def classifier_recipe(distance: DistanceName, labels: int, node_types: int = 0) -> CKGCNRecipe:
    """Mean pooling, from the published initial values; nodes have types, or are all equal."""
    model = network_recipe(distance, WIDTH)
    return replace(
        model,
        blocks=2,
        node=AttributeRecipe("types", (node_types,)) if node_types else model.node,
        head=HeadRecipe("normalised", "mean", layers=2, outputs=labels),
    )


def trained_accuracy(recipe: CKGCNRecipe, data: PackedDataset, epochs: int, seed: int) -> float:
    """Test accuracy (%) after the last epoch.

    The norms then use statistics recomputed from training graphs, not running ones: where all nodes start equal, a
    channel has no variance, and the lag of a running mean behind it would be magnified 300 times.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CKGCN(recipe)
        optimiser = torch.optim.AdamW(network.parameters(), lr=LEARNING_RATE)
        for epoch in range(epochs):
            for group in optimiser.param_groups:
                group["lr"] = LEARNING_RATE * (1 - epoch / epochs)
            for graphs in data.train[torch.randperm(len(data.train))].split(BATCH):
                batch = data.batch(graphs)
                optimiser.zero_grad()
                F.cross_entropy(network(batch), batch.y).backward()
                optimiser.step()
    freeze_statistics(network, data.batch(data.train[:SAMPLE]))
    return accuracy(network, data)


@torch.no_grad()
def accuracy(network: CKGCN, data: PackedDataset) -> float:
    """Percent of the test graphs whose largest output is their class."""
    batches = [data.batch(graphs) for graphs in data.test.split(BATCH)]
    hits = torch.cat([network(batch).argmax(dim=1) == batch.y for batch in batches])
    return 100 * float(hits.double().mean())


def exp_split(pairs: GraphPairs, seed: int) -> PackedDataset:
    """80 % of the pairs train, 20 % test; the two formulas of a pair stay in one split."""
    order = torch.randperm(len(pairs), generator=torch.Generator().manual_seed(seed))
    both = torch.stack([pairs.first, pairs.second], dim=1)[order].flatten()
    test = 2 * round(EXP_TEST * len(pairs))
    return replace(pairs.dataset, test=both[:test], val=both[:0], train=both[test:])


def contrast(pair: GraphPairs, distance: DistanceName, steps: int, seed: int, sample: Data) -> Measured:
    """A network trained to separate the two graphs of one pair, then measured like a random one.

    Statistics of the norms are frozen from the start, at those of `sample`: with those of a batch, two graphs that
    the network cannot separate would differ by amplified rounding.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = freeze_statistics(CKGCN(network_recipe(distance, WIDTH)).double(), sample)
    return measure(separating(network, pair, steps), pair)


def separating(network: CKGCN, pair: GraphPairs, steps: int) -> CKGCN:
    """The network after `steps` steps on one pair."""
    optimiser = torch.optim.Adam(network.parameters(), lr=LEARNING_RATE)
    batch = network.prepare(pair.dataset.batch(torch.cat([pair.first, pair.second])))
    for _ in range(steps):
        optimiser.zero_grad()
        cosine(network(batch)).backward()
        optimiser.step()
    return network


def cosine(outputs: Tensor) -> Tensor:
    """Of the two rows of [2, T]."""
    return F.cosine_similarity(outputs[0], outputs[1], dim=0)
