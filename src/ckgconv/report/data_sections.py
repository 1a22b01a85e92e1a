"""Sections of a report about the data: rows, targets, splits, and how similar test molecules are to training ones."""

from collections import Counter

import numpy as np

from ckgconv.checks import InputError
from ckgconv.data.fingerprints import fingerprint
from ckgconv.data.molecules import parse_smiles
from ckgconv.report.element import Html, element, figure, joined, table
from ckgconv.report.figures import histograms
from ckgconv.report.scores import errors, shown
from ckgconv.report.source import Predicted, Source, Values, repeated

MOST_TARGETS = 6
MOST_ROWS = 20
# What rows.json counts, where it is not 0.
FLAGS = {
    "conflict": "of these, with another target",
    "leak": "molecules in several splits",
    "fragments": "several fragments (salts, mixtures)",
    "isotopes": "isotopes",
    "charged": "a net charge",
    "stereo": "defined stereochemistry",
    "undefined_stereo": "undefined stereochemistry",
}
SIMILARITIES = ((0.0, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 1.0))


def data_section(source: Source) -> Html:
    """Rows of the table, those left out with the reason, and the targets."""
    both = element("div", _rows(source), _targets(source), class_="figures")
    return element("section", element("h2", "Data"), both, _more(source), _left_out(source), id="data")


def _rows(source: Source) -> Html:
    rows = source.table
    graphs = sum(len(each.graphs) for each in source.splits.values())
    if rows is None:
        return element("p", f"{source.run.recipe.data.name}: {graphs:,} rows with targets.")
    again = repeated(list(rows.smiles.values()))
    lines = [
        ("rows of the table", f"{rows.rows:,}"),
        ("used", f"{len(rows.smiles):,}"),
        ("left out, with a reason below", f"{len(rows.left_out):,}"),
        ("valid, without a known target or in no split", f"{rows.unused:,}"),
        ("molecules that occur in an earlier row too", f"{again:,}"),
    ]
    lines += [(words, f"{rows.counts[flag]:,}") for flag, words in FLAGS.items() if rows.counts.get(flag)]
    sizes = source.data.node_ptr.diff().cpu().numpy()
    lines.append(("atoms per molecule, median and largest", f"{np.median(sizes):.0f}, {sizes.max()}"))
    return element("div", element("p", element("code", rows.path.name)), table(("", ""), lines))


def _targets(source: Source) -> Html:
    """A histogram of each target, by split; counts of classes and labels."""
    found = [
        figure(histograms(parts, name), f"Distribution of {name} in each split.")
        for output, name in enumerate(source.names[:MOST_TARGETS])
        if source.kind_of(output) == "values" and (parts := known_targets(source, output))
    ]
    counted = _counted(source)
    return joined([*found, *([counted] if counted else [])])


def _counted(source: Source) -> Html:
    """How many rows of each split have each label or class, a line for each target."""
    rows = []
    for output in range(next(iter(source.splits.values())).target.shape[1] if source.splits else 0):
        if source.kind_of(output) != "values":
            label = source.targets if source.kind == "classes" else source.names[output]
            rows.append((label, *(_listed(source, each, output) for each in source.splits.values())))
    header = ("rows of each class", *source.splits)
    return table(header, rows, numbers=False) if rows else Html("")


def _listed(source: Source, predicted: Predicted, output: int) -> str:
    """Classes with their rows, and the rows of which none is known."""
    known = predicted.target[predicted.known(output), output]
    classes = source.classes if source.kind == "classes" else ["0", "1"]
    counts = sorted(Counter(known.astype(int).tolist()).items())[:MOST_ROWS]
    parts = [f"{classes[value]}: {count:,}" for value, count in counts]
    unknown = len(predicted.target) - len(known)
    return ", ".join([*parts, *([f"unknown: {unknown:,}"] if unknown else [])])


def _more(source: Source) -> Html:
    hidden = len(source.names) - MOST_TARGETS if source.kind == "values" else 0
    return element("p", f"{hidden} more targets are not drawn.") if hidden > 0 else Html("")


def known_targets(source: Source, output: int) -> dict[str, Values]:
    """Known targets of an output, of each split that has any."""
    found = {name: each.target[each.known(output), output] for name, each in source.splits.items()}
    return {name: values for name, values in found.items() if len(values)}


def _left_out(source: Source) -> Html:
    rows = source.table
    if rows is None or not rows.left_out:
        return Html("")
    shown_rows = [(line, text, reason) for line, text, reason in rows.left_out[:MOST_ROWS]]
    hidden = len(rows.left_out) - len(shown_rows)
    more = f" The first {MOST_ROWS} of {len(rows.left_out):,}:" if hidden else ""
    says = element("p", f"Rows that were left out.{more}")
    return joined([says, table(("line", "SMILES", "reason"), shown_rows, numbers=False)])


def splits_section(source: Source) -> Html:
    """Sizes, how rows were divided, and similarity to training molecules with the error it goes with."""
    recipe = source.run.recipe.data
    how = f"Split: {recipe.split}, seed {recipe.split_seed}."
    if recipe.split == "column":
        how = f"Split: column '{recipe.split_column}'."
    if recipe.folds is not None:
        how = f"Fold {recipe.fold + 1} of {recipe.folds}, seed {recipe.split_seed}."
    total = sum(len(each.graphs) for each in source.splits.values())
    rows = [
        (name, f"{len(each.graphs):,}", f"{100 * len(each.graphs) / max(total, 1):.0f} %")
        for name, each in source.splits.items()
    ]
    parts = [element("p", how), table(("split", "rows", "share"), rows)]
    return element("section", element("h2", "Splits"), *parts, _similarity(source), id="splits")


def _similarity(source: Source) -> Html:
    domain = None if source.uncertainty is None else source.uncertainty.applicability
    near: dict[str, Values] = {}
    for name in ("val", "test"):
        values = nearest(source, name) if name in source.splits else None
        if values is not None and np.isfinite(values).any():
            near[name] = values
    if domain is None or not near:
        return Html("")
    last = list(near)[-1]
    known = near[last][np.isfinite(near[last])]
    outside = int((known < domain.threshold).sum())
    says = (
        f"Tanimoto similarity (Morgan fingerprints) of each molecule to the nearest training molecule: median "
        f"{np.median(known):.2f} in {last}. {outside} of {len(known)} {last} molecules are below "
        f"{domain.threshold:.2f}, where 5 % of the training molecules are, and count as outside of the applicability "
        f"domain."
    )
    finite = {name: values[np.isfinite(values)] for name, values in near.items()}
    drawn = figure(histograms(finite, "similarity to the nearest training molecule"), says)
    return element("div", drawn, _errors_by_similarity(source, last, near[last]), class_="figures")


def nearest(source: Source, split: str) -> Values | None:
    """[M] similarity of the molecules of a split to the nearest training molecule; None where it is unknown."""
    domain = None if source.uncertainty is None else source.uncertainty.applicability
    if domain is None or source.table is None:
        return None
    found = []
    for graph in source.splits[split].graphs.tolist():
        text = source.table.smiles.get(graph)
        try:
            found.append(None if text is None else fingerprint(parse_smiles(text, source.run.recipe.data.most_atoms)))
        except InputError:
            found.append(None)
    return domain.nearness(found).similarity


def _errors_by_similarity(source: Source, split: str, near: Values) -> Html:
    wrong = errors(source.splits[split], source.kind)
    rows = []
    for low, high in SIMILARITIES:
        own = (near >= low) & ((near < high) | (high == 1.0)) & (wrong >= 0)
        rows.append((f"{low:g} to {high:g}", int(own.sum()), shown(float(wrong[own].mean()) if own.any() else None)))
    word = "mean absolute error" if source.kind == "values" else "mean 1 − P(truth)"
    if source.kind in ("values", "mixed") and len(source.names) > 1:
        word = "mean of the largest error over targets, in their s.d."
    says = element("p", f"The error in {split} by similarity to training molecules:")
    return element("div", says, table(("similarity", "molecules", word), rows))
