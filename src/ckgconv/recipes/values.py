"""Recipes as JSON, and changes of single values as text.

model.width=32      what `--set` takes: the path of a field, and its value

The fields of the group `model` are those of its `kind`. Files of earlier versions keep their meaning: without a kind
they describe a CKGCN, and without a flow the source of an edge receives.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass, make_dataclass, replace
from functools import cache
from typing import Any

from ckgconv.checks import InputError, check_instance, cut, shown
from ckgconv.files import parse_json
from ckgconv.nn.models import MODELS
from ckgconv.recipe import CKGCNRecipe, ModelRecipe, Recipe
from ckgconv.recipe.format import FORMAT, check_format
from ckgconv.recipe.kinds import kinds_of
from ckgconv.recipe.values import convert
from ckgconv.registry import nearest

# The one value that cannot be changed alone: it decides which other fields its group has.
KIND = "model.kind"
# [mae, rmse]: words without quotes.
WORDS = re.compile(r"\[ *[A-Za-z_]\w*( *, *[A-Za-z_]\w*)* *\]")


def to_json(recipe: Recipe) -> str:
    """The whole recipe, as `from_json` reads it."""
    return json.dumps(asdict(recipe), indent=1)


def from_json(text: str, where: str) -> Recipe:
    """The recipe of a JSON text; `where` names the file in error messages."""
    try:
        values = parse_json(text)
    except InputError as error:
        raise InputError(f"{where} is no recipe ({error}): give a recipe.json that a run has written.") from error
    if isinstance(values, dict):
        check_format(values.pop("format", FORMAT), where)
    kind = _recipe_with(_model_recipe(values))  # type: ignore[arg-type]
    return Recipe(**vars(convert(_with_flow(values), kind, where)))


def with_value(recipe: Recipe, assignment: str) -> Recipe:
    """The recipe with one value changed by "path=value"."""
    check_instance("recipe", recipe, Recipe, "a Recipe")
    check_instance("The assignment", assignment, str, "a text such as 'model.width=32'")
    path, equals, text = assignment.partition("=")
    if not equals:
        raise InputError(f"--set {cut(assignment)} has no '=': write it as model.width=32.")
    value = _value(text, path)
    if path == KIND and value != recipe.model.kind:
        raise InputError(
            f"{KIND} cannot be set to {shown(value)} alone, since each kind of model has values of its own: choose a "
            f"recipe of that kind instead of {recipe.name!r}."
        )
    changed: Recipe = _changed(recipe, path.split("."), value, path)
    # The paper's figure is one of the recipe's own data and metric.
    same = changed.training.metric == recipe.training.metric and changed.data.name == recipe.data.name
    return changed if same else replace(changed, paper_test=())


def _value(text: str, path: str) -> Any:
    """What a text stands for: where it is not JSON, itself or a list of words, whose quotes a shell may have taken."""
    try:
        return parse_json(text)
    except InputError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise InputError(f"{cut(path)} cannot be read ({error}): give a plain value.") from error
        return text.strip("[]").replace(" ", "").split(",") if WORDS.fullmatch(text) else text


@cache
def _recipe_with(model: type[ModelRecipe]) -> type[Recipe]:
    """A recipe whose model has the fields of one kind."""
    made: type[Recipe] = make_dataclass("Recipe", [("model", model)], bases=(Recipe,), frozen=True)
    return made


def _model_recipe(values: Any) -> type[ModelRecipe]:
    """The dataclass of the kind that a file names; `convert` refuses whatever else is wrong with the file."""
    model = values.get("model") if isinstance(values, Mapping) else None
    kind = model.get("kind", CKGCNRecipe.kind) if isinstance(model, Mapping) else CKGCNRecipe.kind
    return MODELS[str(kind)].Recipe


def _with_flow(values: Any) -> Any:
    """The values of a file, with the flow that files without one were written for."""
    model = values.get("model") if isinstance(values, Mapping) else None
    if not isinstance(model, Mapping) or "flow" in model:
        return values
    return {**values, "model": {**model, "flow": "target_to_source"}}


def _changed(part: Any, path: list[str], value: Any, whole: str) -> Any:
    name, *rest = path
    kinds = kinds_of(type(part))
    prefix = whole.removesuffix(".".join(path))
    if name not in kinds:
        raise InputError(f"{cut(whole)} is not a value of a recipe: {nearest(name, list(kinds), prefix)}")
    current = getattr(part, name)
    if rest:
        if not is_dataclass(current):
            raise InputError(
                f"{cut(whole)} is not a value of a recipe: {prefix}{name} has no parts, set it as a whole."
            )
        return replace(part, **{name: _changed(current, rest, value, whole)})
    if is_dataclass(current):
        hint = nearest("", list(kinds_of(type(current))), f"{whole}.")
        raise InputError(f"{whole} is a group of values: {hint}")
    return replace(part, **{name: convert(value, kinds[name], whole)})


__all__ = ["from_json", "to_json", "with_value"]
