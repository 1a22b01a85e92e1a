"""recipe.json, which a run writes and a person may train again."""

from pathlib import Path

from ckgconv.files import read_text
from ckgconv.recipe import Recipe
from ckgconv.recipes import from_json
from ckgconv.recipes import recipe as recipe_of


def read_recipe(path: Path) -> Recipe:
    """The recipe that a run has written."""
    return from_json(read_text(path, "give a recipe.json that a run has written."), str(path))


def named_or_saved(what: str) -> Recipe:
    """The recipe of a name or of a recipe.json."""
    return read_recipe(Path(what)) if Path(what).suffix == ".json" else recipe_of(what)
