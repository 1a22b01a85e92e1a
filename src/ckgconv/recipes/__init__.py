"""Recipes by name."""

from collections.abc import Callable

from ckgconv.checks import InputError
from ckgconv.recipe import Recipe
from ckgconv.recipes import molecules, nodes, paper
from ckgconv.recipes.values import check_recipe, from_json, nearest, to_json, with_value

RECIPES: dict[str, Callable[[], Recipe]] = {
    "zinc": paper.zinc,
    "mnist": paper.mnist,
    "cifar10": paper.cifar10,
    "pattern": paper.pattern,
    "cluster": paper.cluster,
    "peptides-func": paper.peptides_func,
    "peptides-struct": paper.peptides_struct,
    "zinc-demo": molecules.zinc_demo,
    "large-sbm": nodes.large_sbm,
    "zinc-concatenate": paper.zinc_concatenate,
    "cifar10-printed": paper.cifar10_printed,
    "cluster-printed": paper.cluster_printed,
    "peptides-func-printed": paper.peptides_func_printed,
}


def recipe(name: str) -> Recipe:
    """The recipe of that name; a sentence with the nearest one where there is none."""
    if name in RECIPES:
        return RECIPES[name]()
    raise InputError(f"There is no recipe {name!r}: {nearest(name, list(RECIPES))}")


__all__ = ["RECIPES", "check_recipe", "from_json", "recipe", "to_json", "with_value"]
