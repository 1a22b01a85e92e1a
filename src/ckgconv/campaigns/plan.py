"""The file of a campaign: which runs, and whether their settings are final.

    {"format": 1, "name": "widths", "shows": "Wider networks on ZINC", "final": false,
     "grids": [{"recipes": ["zinc"], "seeds": [0, 1], "changes": [[], ["model.width=96"]], "precisions": ["bf16"]}]}

A grid is every recipe with every group of changes (what `--set` takes), every precision and every seed. A campaign is
final once nothing about its runs will be chosen any more; before that no test metric is computed.
"""

import json
import re
from dataclasses import asdict, dataclass
from functools import reduce
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import with_config

from ckgconv.checks import InputError, cut, require, shown
from ckgconv.engine.recipe_checks import check_run
from ckgconv.files import digest, parse_json, read_text
from ckgconv.nn.models import build_model
from ckgconv.recipe import Recipe
from ckgconv.recipe.format import MOST_SETTINGS
from ckgconv.recipe.limits import Whole
from ckgconv.recipe.values import SETTINGS, convert
from ckgconv.recipes import recipe, with_value
from ckgconv.registry import nearest

FORMAT = 1
FILE = "campaign.json"
SHIPPED = Path(__file__).parent  # campaigns that come with the package
# Most characters of a name, since a folder has it too.
NAME = re.compile(r"\w[\w.-]*")


@dataclass(frozen=True)
class PlannedRun:
    """A recipe with changes, a precision and a seed."""

    recipe: str
    changes: tuple[str, ...]  # sorted
    precision: str
    seed: int

    @property
    def name(self) -> str:
        """What the run's folder is called; it follows from all that the run is."""
        changes = f"-{digest(json.dumps(self.changes).encode())[:8]}" if self.changes else ""
        return f"{self.recipe}{changes}-{self.precision}-seed{self.seed}"

    @property
    def label(self) -> str:
        """What it shares with the runs of other seeds, in words."""
        return " ".join([self.recipe, *self.changes]) + f", {self.precision}"

    def resolved(self) -> Recipe:
        """The recipe to train."""
        return reduce(with_value, self.changes, recipe(self.recipe))


@dataclass(frozen=True)
class Grid:
    """Every recipe with every group of changes, every precision and every seed."""

    recipes: tuple[str, ...]
    seeds: tuple[Whole, ...]
    changes: tuple[tuple[str, ...], ...] = ((),)
    precisions: tuple[Literal["32", "tf32", "bf16", "64"], ...] = ("32",)

    def runs(self) -> list[PlannedRun]:
        changes = [tuple(sorted(each)) for each in self.changes]
        return [PlannedRun(*each) for each in product(self.recipes, changes, self.precisions, self.seeds)]


@with_config(SETTINGS)
@dataclass(frozen=True)
class Campaign:
    """A list of runs, and what they are to show."""

    format: Literal[1]
    name: str
    shows: str
    grids: tuple[Grid, ...]
    final: bool = False

    def runs(self) -> list[PlannedRun]:
        """In the order in which they are trained."""
        return [planned for grid in self.grids for planned in grid.runs()]

    def to_json(self) -> str:
        """What `campaign_from_json` reads."""
        return json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n"


def campaign_from_json(text: str, where: str) -> Campaign:
    """The campaign of a JSON text; `where` names the file in error messages."""
    try:
        values = parse_json(text)
    except InputError as error:
        raise InputError(f"{where} is no campaign ({error}): give the file of a campaign.") from error
    require(isinstance(values, dict), f"{where} is not a group of values: give the file of a campaign.")
    require(
        values.get("format") == FORMAT,
        f"{where} has the format {shown(values.get('format'))}, and this version reads format {FORMAT}: write "
        f'"format": {FORMAT}, or use the version that the file was written for.',
    )
    campaign = convert(values, Campaign, where)
    _check(campaign, where)
    return campaign


def shipped() -> list[str]:
    """Names of the campaigns in the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.json"))


def campaign_file(what: str) -> Path:
    """The file that a user names: a file, the folder of a campaign, or a campaign of the package."""
    path = Path(what)
    if path.suffix == ".json":
        require(path.exists(), f"{path} does not exist: give the file of a campaign.")
        return path
    if (path / FILE).exists():
        return path / FILE
    require(not path.exists(), f"{path} has no {FILE}: give the file or the folder of a campaign.")
    require(what in shipped(), f"There is no campaign {shown(what)}: {nearest(what, shipped())} Or give a .json file.")
    return SHIPPED / f"{what}.json"


def read_campaign(what: str) -> Campaign:
    """The campaign that a user names, as `campaign_file` finds it."""
    file = campaign_file(what)
    return campaign_from_json(read_text(file, "give the file of a campaign.", MOST_SETTINGS), str(file))


def _check(campaign: Campaign, where: str) -> None:
    """Refuse names that are no folder's, empty grids, runs that occur twice and recipes that cannot be trained."""
    require(
        NAME.fullmatch(campaign.name) is not None,
        f"{where}.name is {shown(campaign.name)}: use letters, digits, '.', '-' and '_', since it names a folder.",
    )
    require(bool(campaign.grids), f"{where}.grids is empty: give at least one grid.")
    for place, grid in enumerate(campaign.grids):
        for field, values in vars(grid).items():
            require(bool(values), f"{where}.grids[{place}].{field} is empty: give at least one.")
    names, checked = set(), set()
    for planned in campaign.runs():
        require(
            planned.name not in names, f"{where} has {cut(planned.label)}, seed {planned.seed} twice: give it once."
        )
        names.add(planned.name)
        if (planned.recipe, planned.changes) not in checked:  # seeds and precisions share a network
            _check_run(planned, where)
        checked.add((planned.recipe, planned.changes))


def _check_run(planned: PlannedRun, where: str) -> None:
    """Refuse a recipe that cannot be trained; its network is built, since that is what refuses most."""
    paths: list[Any] = [change.partition("=")[0] for change in planned.changes]
    require(len(set(paths)) == len(paths), f"{where} changes one value of {cut(planned.recipe)} twice: change it once.")
    try:
        check_run(planned.resolved())
        build_model(planned.resolved().model)
    except InputError as error:
        raise InputError(f"{where}, {cut(planned.label)}: {error}") from error
