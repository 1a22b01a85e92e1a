"""Convolution and attention in one network, on the data sets of the paper.

Training and dropouts of kernels are those of the paper's recipe of the data set, attention dropout is that of GRIT
there. Each network has at most the parameters of its benchmark: 500 000, on superpixels 100 000.
"""

from dataclasses import fields, replace
from typing import Literal, NamedTuple

from ckgconv.recipe import GRITRecipe, HybridRecipe, KernelNetworkRecipe, Recipe
from ckgconv.recipes import grit, paper

Mixing = Literal["turns", "parallel", "modulated"]


class Size(NamedTuple):
    """What a mixing fits into the budget."""

    width: int
    blocks: int
    heads: int = 8
    head_channels: int = 8


Sizes = dict[Mixing, Size]

ZINC: Sizes = {"turns": Size(64, 10), "parallel": Size(60, 10, heads=4), "modulated": Size(64, 9)}
MNIST: Sizes = {"turns": Size(46, 4, heads=4), "parallel": Size(44, 4, 4, 4), "modulated": Size(42, 4)}
CIFAR10: Sizes = {"turns": Size(54, 3, heads=4), "parallel": Size(48, 3, heads=4), "modulated": Size(50, 3)}
CLUSTER: Sizes = {"turns": Size(48, 16), "parallel": Size(46, 16, heads=4), "modulated": Size(48, 16)}
PEPTIDES: Sizes = {"turns": Size(96, 4, 8, 12), "parallel": Size(96, 4, heads=4), "modulated": Size(96, 4)}

# The mixing of each data set's `…-hybrid`.
ZINC_MIXING: Mixing = "modulated"
MNIST_MIXING: Mixing = "modulated"
CIFAR10_MIXING: Mixing = "modulated"
PATTERN_MIXING: Mixing = "modulated"
CLUSTER_MIXING: Mixing = "modulated"
PEPTIDES_FUNC_MIXING: Mixing = "modulated"
PEPTIDES_STRUCT_MIXING: Mixing = "modulated"


def hybrid(base: Recipe, attention: Recipe, sizes: Sizes, mixing: Mixing) -> Recipe:
    """The hybrid on the data of a recipe of the paper, with the attention dropout of GRIT's recipe."""
    model = attention.model
    assert isinstance(model, GRITRecipe)
    shared = {field.name: getattr(base.model, field.name) for field in fields(KernelNetworkRecipe)}
    values = {**shared, **sizes[mixing]._asdict(), "kind": HybridRecipe.kind}
    chosen = HybridRecipe(**values, mixing=mixing, attention_dropout=model.attention_dropout)
    return replace(base, name=f"{base.name}-hybrid", model=chosen, paper_test=())


def zinc_with(mixing: Mixing) -> Recipe:
    """ZINC-12k with a given mixing."""
    return replace(hybrid(paper.zinc(), grit.zinc(), ZINC, mixing), name=f"zinc-hybrid-{mixing}")


def zinc() -> Recipe:
    """ZINC-12k."""
    return hybrid(paper.zinc(), grit.zinc(), ZINC, ZINC_MIXING)


def mnist() -> Recipe:
    """MNIST superpixels."""
    return hybrid(paper.mnist(), grit.mnist(), MNIST, MNIST_MIXING)


def cifar10() -> Recipe:
    """CIFAR10 superpixels."""
    return hybrid(paper.cifar10(), grit.cifar10(), CIFAR10, CIFAR10_MIXING)


def pattern() -> Recipe:
    """PATTERN, with the sizes that ZINC has."""
    return hybrid(paper.pattern(), grit.pattern(), ZINC, PATTERN_MIXING)


def cluster() -> Recipe:
    """CLUSTER."""
    return hybrid(paper.cluster(), grit.cluster(), CLUSTER, CLUSTER_MIXING)


def peptides_func() -> Recipe:
    """Peptides-func."""
    return hybrid(paper.peptides_func(), grit.peptides_func(), PEPTIDES, PEPTIDES_FUNC_MIXING)


def peptides_struct() -> Recipe:
    """Peptides-struct."""
    return hybrid(paper.peptides_struct(), grit.peptides_struct(), PEPTIDES, PEPTIDES_STRUCT_MIXING)
