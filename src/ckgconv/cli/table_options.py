"""Options of `ckgconv train` that say what a table of molecules contains, and the recipe that follows from them.

Names are those of chemprop 2 where it has one, beside ours. The kind of a target follows from its cells:

    labels     all 0 or 1, or true or false
    values     other numbers
    classes    texts that recur; whole numbers only with --task-type multiclass

Legend: T targets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ckgconv.checks import InputError, require
from ckgconv.data.decimals import looks_like_a_number
from ckgconv.data.descriptors import DESCRIPTORS
from ckgconv.data.splits import check_sizes
from ckgconv.data.table import Table, is_missing, named_column, printable
from ckgconv.data.table_split import split_word
from ckgconv.data.table_targets import TRUTH, class_names, is_truth
from ckgconv.data.tables import is_table, read_table, stem
from ckgconv.recipe import DataRecipe, Recipe, TrainingRecipe
from ckgconv.recipe.limits import usable_name
from ckgconv.recipes.molecules import molecules
from ckgconv.registry import listed, nearest
from ckgconv.tasks.task import Targets


class SplitType(StrEnum):
    random = "random"
    random_with_repeated_smiles = "random_with_repeated_smiles"
    stratified = "stratified"
    scaffold = "scaffold"
    scaffold_balanced = "scaffold_balanced"
    butina = "butina"
    group = "group"


class TaskType(StrEnum):
    regression = "regression"
    classification = "classification"
    multiclass = "multiclass"


KINDS: dict[TaskType, Targets] = {
    TaskType.regression: "values",
    TaskType.classification: "labels",
    TaskType.multiclass: "classes",
}
# Loss of a column among others, by its kind.
COLUMN_LOSSES: dict[Targets, str] = {"values": "huber", "labels": "binary", "classes": "cross_entropy"}

# So many different texts may be classes in a table of any size; more have to recur.
FEW_CLASSES = 20


@dataclass(frozen=True)
class TableOptions:
    """Columns of a table, what they hold, and how the rows are split."""

    smiles: Annotated[
        str, typer.Option("--smiles", "--smiles-columns", help="Table: column of the SMILES.", metavar="COLUMN")
    ] = "smiles"
    target: Annotated[
        list[str] | None,
        typer.Option("--target", "--target-columns", help="Table: columns to predict.", metavar="COLUMN"),
    ] = None
    task_type: Annotated[
        list[TaskType] | None,
        typer.Option("--task-type", "-t", help="Table: of all targets, or of each; by default by their cells."),
    ] = None
    split: Annotated[
        SplitType | None,
        typer.Option("--split", "--split-type", case_sensitive=False, help="Table: how to split rows, or fold them."),
    ] = None
    split_sizes: Annotated[
        list[float] | None,
        typer.Option("--split-sizes", help="Table: shares of train, validation, test: 0.8 0.1 0.1.", metavar="SHARE"),
    ] = None
    splits_column: Annotated[
        str | None, typer.Option("--splits-column", help="Table: column of train, val and test.", metavar="COLUMN")
    ] = None
    group_column: Annotated[
        str | None, typer.Option("--group-column", help="Table: groups that no split divides.", metavar="COLUMN")
    ] = None
    weight_column: Annotated[
        str | None, typer.Option("--weight-column", help="Table: weights of rows in the loss.", metavar="COLUMN")
    ] = None

    @property
    def targets(self) -> list[str]:
        """Columns to predict."""
        return self.target or []

    def refuse(self, what: str) -> None:
        """Refuse options of a table that were given with something else."""
        for field in fields(self):
            if getattr(self, field.name) not in (field.default, []):
                name = "--" + field.name.replace("_", "-")
                raise InputError(f"{name} belongs to a table such as a CSV, not to {what!r}: leave it out.")

    def said(self, chosen: Recipe) -> list[str]:
        """Sentences about what was read in another way than it was named."""
        found = chosen.data.smiles
        other = found != self.smiles and is_table(chosen.data.name)
        return [f"The SMILES are those of column {found!r}."] if other else []

    def data(self, path: Path, classes: tuple[tuple[str, ...], ...]) -> DataRecipe:
        """The data of a run on a table."""
        split: str = "random" if self.split is None else self.split.value
        for option, column, named in (
            ("--splits-column", self.splits_column, "column"),
            ("--group-column", self.group_column, "group"),
        ):
            require(
                column is None or self.split is None or split == named,
                f"--split is {split!r}, but {option} was given too, which splits the rows: leave out one of them.",
            )
            split = named if column is not None else split
        require(
            not (self.splits_column and self.group_column),
            "--splits-column and --group-column were given, and each splits the rows: leave out one of them.",
        )
        require(split != "group" or bool(self.group_column), "--split is 'group': name the groups by --group-column.")
        sizes = tuple(self.split_sizes or DataRecipe.split_sizes)
        check_sizes(sizes)
        return DataRecipe(
            str(path.resolve()),
            smiles=self.smiles,
            targets=tuple(self.targets),
            descriptors="rdkit",
            split=split,  # type: ignore[arg-type]
            split_sizes=sizes,
            split_column=self.splits_column or "",
            group_column=self.group_column or "",
            weight_column=self.weight_column or "",
            classes=classes,
        )


def table_recipe(path: Path, options: TableOptions) -> Recipe:
    """A recipe for a table, by the kinds of its targets."""
    require(path.exists(), f"{path} does not exist: check the path of the table.")
    table, targets = read_table(path), options.targets
    options = replace(options, smiles=named_column(table.columns, options.smiles, path))
    others = [name for name in table.columns if name != options.smiles]
    require(bool(targets), f"No target was named: give --target with one of {listed(others)}.")
    named = (options.splits_column, options.group_column, options.weight_column)
    for name in (options.smiles, *targets, *(each for each in named if each is not None)):
        if name not in table.columns:
            raise InputError(f"{path} has no column {name!r}: {nearest(name, list(table.columns))}")
    require(len(set(targets)) == len(targets), "The same target was given twice: give each once.")
    require(options.smiles not in targets, f"--target names {options.smiles!r}, the SMILES themselves: leave it out.")
    kinds = [_kind(table, name, forced) for name, forced in zip(targets, _forced(options), strict=True)]
    names = tuple(
        class_names(table, name) if kind == "classes" else () for name, kind in zip(targets, kinds, strict=True)
    )
    data = options.data(path, names if any(names) else ())
    if data.split == "column":
        for row in range(len(table.rows)):
            split_word(table, data, row)
    return replace(recipe_of(data, kinds, len(table.rows)), name=usable_name(stem(path), "table"))


def recipe_of(data: DataRecipe, kinds: Sequence[Targets], rows: int) -> Recipe:
    """The recipe for targets of these kinds [T] of so many rows."""
    chosen = molecules(data, set(kinds) == {"labels"}, rows=rows, read=len(DESCRIPTORS))
    if set(kinds) <= {"values"} or set(kinds) == {"labels"}:
        return chosen
    outputs = tuple(max(1, len(names)) for names in data.classes or ((),) * len(kinds))
    model = replace(chosen.model, head=replace(chosen.model.head, outputs=sum(outputs)))
    return replace(chosen, model=model, training=_training(chosen.training, kinds, outputs))


def _training(training: TrainingRecipe, kinds: Sequence[Targets], outputs: tuple[int, ...]) -> TrainingRecipe:
    if list(kinds) == ["classes"]:
        return replace(training, loss="cross_entropy", metric="accuracy", scale_targets=False)
    return replace(
        training,
        loss="mixed",
        metric="mixed_score",
        scale_targets="values" in kinds,
        mixed=tuple(COLUMN_LOSSES[kind] for kind in kinds),
        mixed_outputs=outputs,
    )


def _forced(options: TableOptions) -> list[TaskType | None]:
    """The task type of each target, None where it follows from the cells."""
    given, targets = options.task_type or [], options.targets
    require(
        len(given) in (0, 1, len(targets)),
        f"--task-type was given {len(given)} times for {len(targets)} targets: give one for all, or one for each.",
    )
    return [None] * len(targets) if not given else [*given] * len(targets) if len(given) == 1 else [*given]


def _kind(table: Table, name: str, forced: TaskType | None) -> Targets:
    """The kind of a target; a cell that does not fit is named by its line."""
    if forced is TaskType.multiclass:
        return "classes"
    cells = [cell.strip() for cell in table.column(name) if not is_missing(cell)]
    truth = is_truth([cell.lower() for cell in cells])
    if forced is None and cells and not truth and not any(map(looks_like_a_number, cells)):
        check_texts(table, name, cells)
        return "classes"
    known = [TRUTH[cell.lower()] for cell in cells] if truth else table.numbers(name)
    values = {value for value in known if value == value}
    require(
        len(values) != 1,
        f"Every known value of target {name!r} in {table.path} is {min(values, default=0.0):g}, so that there is "
        f"nothing to learn: choose another column.",
    )
    labels = bool(values) and values <= {0.0, 1.0}
    if forced is TaskType.classification:
        require(
            labels or not values,
            f"--task-type is 'classification', but column {name!r} of {table.path} has other values than 0 and 1: use "
            f"multiclass for more classes.",
        )
        return "labels"
    return "labels" if labels and forced is None else "values"


def check_texts(table: Table, name: str, cells: Sequence[str]) -> None:
    """Refuse texts [M] that nearly all differ: numbers with units, dates or notes, not classes."""
    different = len(set(cells))
    require(
        different <= FEW_CLASSES or 2 * different <= len(cells),
        f"Column '{printable(name)}' of {table.path} has {different:,} different texts in {len(cells):,} rows, such as "
        f"'{printable(cells[0])}': give numbers, or --task-type multiclass where the texts are classes.",
    )
