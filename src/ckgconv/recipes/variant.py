"""Recipes that differ from another in a few values of their CKGCN."""

from dataclasses import replace
from typing import Any

from ckgconv.checks import InputError
from ckgconv.recipe import CKGCNRecipe, Recipe


def changed(base: Recipe, kernel: dict[str, Any] | None = None, **model: Any) -> Recipe:
    """A recipe with other values in its model or kernel."""
    network = base.model
    if not isinstance(network, CKGCNRecipe):
        raise InputError(f"The recipe {base.name!r} is one of kind {network.kind!r}, not of a CKGCN: choose another.")
    inner = replace(network.kernel, **(kernel or {}))
    return replace(base, model=replace(network, kernel=inner, **model))
