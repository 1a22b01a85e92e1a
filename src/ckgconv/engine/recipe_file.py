"""recipe.json: the recipe that a run writes, and that can be trained again."""

from pathlib import Path

from ckgconv.engine.parts import Parts
from ckgconv.files import read_text
from ckgconv.recipe import Recipe
from ckgconv.recipe.format import MOST_SETTINGS
from ckgconv.recipes import from_json
from ckgconv.recipes import recipe as recipe_of


def read_recipe(path: Path) -> Recipe:
    """The recipe in a recipe.json."""
    return from_json(read_text(path, "give a recipe.json that a run has written.", MOST_SETTINGS), str(path))


def named_or_saved(what: str) -> Recipe:
    """The recipe in a recipe.json, or the one of that name; refused where parts of it were given in Python."""
    if Path(what).suffix != ".json":
        return recipe_of(what)
    saved = read_recipe(Path(what))
    Parts().check(saved, saved.given, what)
    return saved
