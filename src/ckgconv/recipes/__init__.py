"""Recipes by name, and as JSON."""

from collections.abc import Callable

from ckgconv.recipe import Recipe
from ckgconv.recipes import classics, gnn_plus, graphormer, graphs, grit, hybrid, molecules, nodes, paper, san
from ckgconv.recipes.values import from_json, to_json, with_value
from ckgconv.registry import Registry

OURS: dict[str, Callable[[], Recipe]] = {
    **paper.MAIN_TABLE,
    "zinc-demo": molecules.zinc_demo,
    "large-sbm": nodes.large_sbm,
    "cyclic-sbm": nodes.cyclic_sbm,
    "mutag": graphs.mutag,
    "nodes-homophilous": nodes.nodes_homophilous,
    "nodes-heterophilous": nodes.nodes_heterophilous,
    "nodes-directed": nodes.nodes_directed,
    "zinc-concatenate": paper.zinc_concatenate,
    "cifar10-printed": paper.cifar10_printed,
    "cluster-printed": paper.cluster_printed,
    "peptides-func-printed": paper.peptides_func_printed,
    "zinc-grit": grit.zinc,
    "mnist-grit": grit.mnist,
    "cifar10-grit": grit.cifar10,
    "pattern-grit": grit.pattern,
    "cluster-grit": grit.cluster,
    "peptides-func-grit": grit.peptides_func,
    "peptides-struct-grit": grit.peptides_struct,
    **hybrid.RECIPES,
    **classics.RECIPES,
    **gnn_plus.RECIPES,
    "zinc-graphormer": graphormer.zinc,
    "zinc-san": san.zinc,
}
RECIPES: Registry[Callable[[], Recipe]] = Registry("recipe", "ckgconv.recipes", OURS)


def recipe(name: str) -> Recipe:
    """The recipe of that name; raises InputError with the nearest name where it is unknown."""
    return RECIPES[name]()


__all__ = ["RECIPES", "from_json", "recipe", "to_json", "with_value"]
