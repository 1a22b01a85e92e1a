"""Recipe files: JSON with any byte changed, and values from where programs break. Only read, not trained."""

import copy
import json
from pathlib import Path

from hostile.door import Door
from hostile.mutations import FRACTIONS, WHOLE, damaged
from hypothesis import strategies as st

from ckgconv import recipe
from ckgconv.recipe import Recipe
from ckgconv.recipes.values import from_json, to_json

TEXTS = [to_json(recipe(name)) for name in ("zinc-demo", "mnist", "peptides-func")]
VALUES = (
    WHOLE | FRACTIONS | st.sampled_from([None, True, "", "rrwp", [], [1], {}, {"a": 1}, "x" * 300, "../../x", "[/]"])
)


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A recipe with a few values exchanged, removed or added."""
    values = json.loads(draw(st.sampled_from(TEXTS)))
    for _ in range(draw(st.integers(0, 3))):
        group = values
        while draw(st.booleans()) and (inner := [each for each in group.values() if isinstance(each, dict) and each]):
            group = draw(st.sampled_from(inner))
        name = draw(st.sampled_from([*group, "other"]))
        if draw(st.integers(0, 4)):
            group[name] = copy.deepcopy(draw(VALUES))  # later changes may reach into it
        else:
            group.pop(name, None)
    return json.dumps(values).encode()


def enter(case: bytes, folder: Path) -> None:
    read = from_json(case.decode("utf-8", "replace"), "recipe.json")
    assert isinstance(read, Recipe)
    assert from_json(to_json(read), "recipe.json") == read


DOOR = Door("recipes", changed() | damaged(changed(), most=3), enter)
