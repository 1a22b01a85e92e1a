"""Recipes by name."""

from collections.abc import Callable
from difflib import get_close_matches

from ckgconv.checks import InputError
from ckgconv.recipe import Recipe
from ckgconv.recipes import paper

RECIPES: dict[str, Callable[[], Recipe]] = {
    "zinc": paper.zinc,
    "mnist": paper.mnist,
    "cifar10": paper.cifar10,
    "pattern": paper.pattern,
    "cluster": paper.cluster,
    "peptides-func": paper.peptides_func,
    "peptides-struct": paper.peptides_struct,
    "zinc-concatenate": paper.zinc_concatenate,
    "cifar10-printed": paper.cifar10_printed,
    "cluster-printed": paper.cluster_printed,
    "peptides-func-printed": paper.peptides_func_printed,
}


def recipe(name: str) -> Recipe:
    """The recipe of that name; a sentence with the nearest one where there is none."""
    if name in RECIPES:
        return RECIPES[name]()
    near = get_close_matches(name, RECIPES, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"choose one of {', '.join(RECIPES)}."
    raise InputError(f"There is no recipe {name!r}: {hint}")


__all__ = ["RECIPES", "recipe"]
