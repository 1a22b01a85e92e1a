"""What a CKGCN with drawn weights separates, above the noise of rounding.

    separated   max |f(G) - f(H)| / max |f| > MARGIN · noise,   noise = the largest max |f(G) - f(πG)| / max |f|

π relabels the nodes of a graph: f(G) = f(πG) but for rounding. All in float64.

A norm must not see which graphs share a batch, or it would carry a graph's identity into the other's output. So batch
statistics are taken once, from one fixed sample of graphs, and frozen: from there on f is one function of one graph.

Legend: G graphs, Q pairs of graphs, T outputs.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

from ckgconv.data.expressiveness import GraphPairs
from ckgconv.data.packed import PackedDataset
from ckgconv.nn import CKGCN
from ckgconv.nn.coordinates import GaussianEncoder
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, HeadRecipe
from ckgconv.studies.oracle import LONGEST, STEPS, Separated

DistanceName = Literal["SPD", "RD", "RRWP"]
BLOCKS = 3
OUTPUTS = 16
# A difference above this many times the noise counts.
MARGIN = 100.0
# How strongly γ of the norms varies: the larger, the more the kernel bends between close coordinates.
SCALE = 6.0
# Pairs of nodes in one forward pass, few enough for a wide layer of them to stay in cache.
ROWS = 8_000


@dataclass(frozen=True)
class Measured:
    """Outputs of one network on pairs of graphs, compared."""

    difference: Tensor  # [Q] relative
    noise: float  # the largest of all graphs, relative

    @property
    def separated(self) -> Separated:
        return (self.difference > MARGIN * self.noise).numpy()


def network_recipe(distance: DistanceName, width: int, outputs: int = OUTPUTS) -> CKGCNRecipe:
    """A CKGCN that sees nothing but its distance.

    Nodes and edges carry no attributes, and M_ii = 0, the one return probability given with SPD and RD, carries no
    information. The degree follows from SPD (the number of nodes at distance 1) and from RRWP (M_ij = 1/d_i);
    resistances do not show which nodes are neighbours, so for RD the degree scaler is left out.
    """
    return CKGCNRecipe(
        width=width,
        blocks=BLOCKS,
        node=AttributeRecipe("constant"),
        edge=AttributeRecipe("none"),
        head=HeadRecipe("pyramid", "sum", layers=2, outputs=outputs),
        encoding=ENCODINGS[distance],
        steps={"SPD": LONGEST, "RD": 0, "RRWP": STEPS}[distance],
        node_steps=1,
        degree_scaler="none" if distance == "RD" else "output",
    )


ENCODINGS: dict[DistanceName, Literal["spd", "rd", "rrwp"]] = {"SPD": "spd", "RD": "rd", "RRWP": "rrwp"}


def random_network(distance: DistanceName, width: int, seed: int, sample: Data) -> CKGCN:
    """A CKGCN in float64 with all weights drawn and its batch statistics frozen at those of `sample`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = CKGCN(network_recipe(distance, width)).double()
        draw_weights(network)
    return freeze_statistics(network, sample)


def draw_weights(network: CKGCN) -> None:
    """Matrices N(0, 1/fan-in), norms with γ and β drawn too.

    The published initialisation is a poor sample of networks: β = 0 of a norm turns the constant features of a graph
    without attributes into zeros, and weights of 0.02 make ψ nearly constant.
    """
    for module in network.modules():
        if isinstance(module, WeightedBatchNorm):
            nn.init.normal_(module.scale, std=SCALE)
            nn.init.normal_(module.shift)
        elif isinstance(module, GaussianEncoder):
            draw_gaussians(module)
        elif (weight := getattr(module, "weight", None)) is not None and not isinstance(module, nn.Embedding):
            nn.init.normal_(weight, std=weight.shape[-1] ** -0.5)


@torch.no_grad()
def draw_gaussians(encoder: GaussianEncoder) -> None:
    """Wide and narrow ones: half below 0.02 ohm.

    Resistances of CFI graphs differ by 1e-4, and by moments so high that wide Gaussians do not see them in float64.
    """
    encoder.spread.copy_(3 * torch.rand_like(encoder.spread) ** 8)
    nn.init.normal_(encoder.unreachable)


@torch.no_grad()
def freeze_statistics(network: CKGCN, sample: Data) -> CKGCN:
    """Evaluation mode, with the statistics of one batch as the running ones."""
    norms = [module for module in network.modules() if isinstance(module, WeightedBatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
    network.train()(sample)
    return network.eval()


@torch.no_grad()
def measure(network: CKGCN, pairs: GraphPairs, seed: int = 0) -> Measured:
    """Differences of the pairs, and the noise of relabelling every graph that occurs in them once."""
    graphs, place = torch.cat([pairs.first, pairs.second]).unique(return_inverse=True)
    generator = torch.Generator().manual_seed(seed)
    plain, relabelled = [], []
    for part in parts(pairs.dataset, graphs):
        data = pairs.dataset.batch(part)
        plain.append(network(data))
        relabelled.append(network(relabel(data, generator)))
    outputs, again = torch.cat(plain), torch.cat(relabelled)
    size = outputs.abs().amax(dim=1)
    first, second = place.split(len(pairs))
    difference = (outputs[first] - outputs[second]).abs().amax(dim=1) / torch.maximum(size[first], size[second])
    noise = ((outputs - again).abs().amax(dim=1) / size).max()
    # A relabelling may by chance cause no rounding difference at all.
    return Measured(difference, max(float(noise), torch.finfo(torch.float64).eps))


def relabel(data: Data, generator: torch.Generator) -> Data:
    """The same graphs, the nodes of each in another order."""
    # Random keys, sorted graph by graph: `order` lists old numbers, its inverse gives each old node its new number.
    keys = data.batch + torch.rand(data.num_nodes, generator=generator, dtype=torch.float64)
    order = keys.argsort()
    return Data(x=data.x[order], edge_index=order.argsort()[data.edge_index], batch=data.batch)


def parts(dataset: PackedDataset, graphs: Tensor) -> list[Tensor]:
    """`graphs` in pieces of at most about ROWS pairs of nodes."""
    rows = dataset.node_ptr.diff()[graphs].square().cumsum(0)
    return [graphs[rows // ROWS == piece] for piece in (rows // ROWS).unique()]
