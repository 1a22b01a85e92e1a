"""Values of own columns in a request, checked against those that the network reads."""

from collections.abc import Mapping, Sequence

from ckgconv.checks import require

Given = Mapping[str, float | None]


def values_of(given: Sequence[Given] | None, names: Sequence[str], count: int) -> list[list[float | None]] | None:
    """A row of values for each of `count` molecules, in the order of the names; None where the network reads none.

    One group stands for all molecules. Every column has to be named, with null where its value is unknown.
    """
    if not names:
        require(not given, "The network reads molecules alone: leave out the field features.")
        return None
    example = ", ".join(f'"{name}": 1.5' for name in names)
    require(
        bool(given),
        f"The network reads {', '.join(names)} beside each molecule: give the field features, [{{{example}}}], null "
        f"where a value is unknown.",
    )
    groups = list(given or ())
    groups = groups * count if len(groups) == 1 else groups
    require(
        len(groups) == count,
        f"The field features has {len(groups)} groups for {count} molecules: give one for each, or one for all.",
    )
    for group in groups:
        unknown = [name for name in group if name not in names]
        missing = [name for name in names if name not in group]
        require(
            not unknown and not missing,
            f"A group of the field features names other columns than {', '.join(names)}: name each of them once, null "
            f"where a value is unknown.",
        )
    return [[group[name] for name in names] for group in groups]
