"""Recipes that differ from another in a few values of their CKGCN."""

from dataclasses import replace
from typing import Any

from ckgconv.checks import InputError
from ckgconv.recipe import CKGCNRecipe, Recipe


def changed(base: Recipe, kernel: dict[str, Any] | None = None, **model: Any) -> Recipe:
    """A recipe with other values in its model, and in its kernel."""
    ckgcn = base.model
    if not isinstance(ckgcn, CKGCNRecipe):
        raise InputError(f"The recipe {base.name!r} describes a {ckgcn.kind!r}, not a CKGCN: choose another.")
    changed_kernel = replace(ckgcn.kernel, **(kernel or {}))
    return replace(base, model=replace(ckgcn, kernel=changed_kernel, **model))
