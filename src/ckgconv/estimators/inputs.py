"""What `fit` and `predict` are given → a list of SMILES, and targets as arrays.

X is one SMILES, a list or an array of them, or a table with one column; tables are recognised by their methods, so that
no library of tables is imported. A SMILES that is missing (None, NaN) is an empty text, which is no valid molecule.

Legend: M rows, T targets.
"""

from collections.abc import Iterable, Set
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ckgconv.checks import InputError, require

REMEDY = "give a list, an array or a one-column table of SMILES"


def smiles_of(X: Any) -> list[str]:
    """The SMILES of all rows."""
    if isinstance(X, str):
        return [X]
    if is_table(X):
        names = list(X.columns)
        require(len(names) == 1, f"X has {len(names)} columns ({_listed(names)}): give the column of SMILES alone.")
        X = X[names[0]]
    if isinstance(X, np.ndarray):
        require(
            X.ndim == 1 or (X.ndim == 2 and X.shape[1] == 1),
            f"X has shape {list(X.shape)}: {REMEDY}. Reshape your data to one dimension.",
        )
        X = X.reshape(-1)
    ordered = isinstance(X, Iterable) and not isinstance(X, Set)  # rows of y have the order of X
    require(ordered, f"X is a {type(X).__name__}: {REMEDY}.")
    _check_unmasked("X", X)
    texts = [_text(each, row) for row, each in enumerate(X)]
    require(bool(texts), f"X has 0 samples (shape=(0,)) while a minimum of 1 is required: {REMEDY}.")
    return texts


def feature_name(X: Any) -> str | None:
    """The name of the column where X is a table whose columns have names."""
    names = list(X.columns) if is_table(X) else []
    return names[0] if len(names) == 1 and isinstance(names[0], str) else None


def is_table(X: Any) -> bool:
    """Whether X has columns, as data frames have."""
    return hasattr(X, "columns") and hasattr(X, "__getitem__")


def target_names(y: Any, count: int) -> tuple[str, ...]:
    """Names of the targets: those of the columns of a table, or of a series, else y, or y0, y1, …"""
    named = [str(each) for each in y.columns] if is_table(y) else [getattr(y, "name", None)]
    if len(named) == count and all(isinstance(each, str) and each for each in named):
        return tuple(str(each) for each in named)
    return ("y",) if count == 1 else tuple(f"y{number}" for number in range(count))


def targets_of(y: Any, rows: int) -> NDArray[Any]:
    """y as an array [M] or [M, T], of as many rows as X has."""
    require(y is not None, "fit requires y to be passed, but the target y is None: give one target per SMILES.")
    _check_unmasked("y", y)
    array = np.asarray(y)
    require(array.ndim in (1, 2), f"y has shape {list(array.shape)}: give [M] or [M, T], a row for each SMILES.")
    require(
        len(array) == rows,
        f"X has {rows} rows and y has {len(array)}, inconsistent numbers of samples: give one target per SMILES.",
    )
    require(array.size > 0, "y has no column: give at least one target.")
    return array


def values_of(array: NDArray[Any]) -> NDArray[np.float64]:
    """Targets of a regression, NaN where unknown."""
    require(
        array.dtype.kind in "biufO",
        f"y has dtype {array.dtype}: give numbers. Complex data not supported."
        if array.dtype.kind == "c"
        else f"y has dtype {array.dtype}: give numbers, NaN where a target is unknown.",
    )
    try:
        values = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"y contains what is no number ({error}): give numbers, NaN where unknown.") from error
    infinite = [int(row) for row, *_ in np.argwhere(np.isinf(values))]
    require(
        not infinite,
        f"y contains infinity, in row {infinite[0] if infinite else 0}: give finite numbers, NaN where unknown.",
    )
    return values


def weights_of(sample_weight: Any, rows: int) -> Tensor | None:
    """[M] weights of the rows; None where none were given."""
    if sample_weight is None:
        return None
    _check_unmasked("sample_weight", sample_weight)
    weights = np.asarray(sample_weight)
    require(
        weights.dtype.kind in "biuf" and weights.shape == (rows,),
        f"sample_weight has dtype {weights.dtype} and shape {list(weights.shape)}: give one number for each row of X, "
        f"[{rows}].",
    )
    usable = bool((np.isfinite(weights) & (weights >= 0)).all()) and bool((weights > 0).any())
    require(usable, "sample_weight has negative or infinite values, or zeros only: give weights of at least 0.")
    return torch.from_numpy(weights.astype(np.float32))


def _check_unmasked(name: str, values: Any) -> None:
    """Refuse masked values, from which numpy takes the mask."""
    require(not np.ma.is_masked(values), f"{name} has masked values: fill them, targets with NaN, or leave rows out.")


def _text(value: Any, row: int) -> str:
    if isinstance(value, str):
        return str(value)
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, list | tuple | np.ndarray) and len(value) == 1 and isinstance(value[0], str):
        return str(value[0])
    raise InputError(f"X[{row}] is of type {type(value).__name__}, not text: {REMEDY}.")


def _listed(names: list[Any]) -> str:
    shown = ", ".join(str(each) for each in names[:5])
    return shown if len(names) <= 5 else f"{shown}, …"
