"""recipe.json: the recipe that a run writes, and that can be trained again."""

from pathlib import Path

from ckgconv.files import read_text
from ckgconv.recipe import Recipe
from ckgconv.recipes import from_json
from ckgconv.recipes import recipe as recipe_of


def read_recipe(path: Path) -> Recipe:
    """The recipe in a recipe.json."""
    return from_json(read_text(path, "give a recipe.json that a run has written."), str(path))


def named_or_saved(what: str) -> Recipe:
    """The recipe in a recipe.json, or the one of that name."""
    return read_recipe(Path(what)) if Path(what).suffix == ".json" else recipe_of(what)
