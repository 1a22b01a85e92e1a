"""Sections of a report that draw molecules: the worst predictions, and what a few predictions are made of."""

import numpy as np

from ckgconv.checks import InputError
from ckgconv.explanation.drawing import Picture, draw, draw_grid
from ckgconv.explanation.explainer import Explainer, Explanation
from ckgconv.explanation.substructures import draw_substructures, substructures
from ckgconv.report.data_sections import nearest
from ckgconv.report.element import Html, element, figure, picture
from ckgconv.report.scores import errors, most_probable
from ckgconv.report.source import Predicted, Source

WORST = 12
DRAWN, EXPLAINED = 6, 24
# Larger ones would take long to explain, and a page has no room for them.
MOST_ATOMS = 60
WIDTH, HEIGHT = 300, 210


def judged_split(source: Source) -> str | None:
    """The split whose molecules are drawn."""
    return next((name for name in ("test", "val", "train") if name in source.splits), None)


def worst_section(source: Source) -> Html:
    """The molecules with the largest errors, with their similarity to the nearest training molecule."""
    split = judged_split(source)
    if source.table is None or split is None:
        return Html("")
    predicted, near = source.splits[split], nearest(source, split)
    wrong = errors(predicted, source.kind)
    pictures = []
    for row in np.argsort(-wrong, kind="stable")[:WORST].tolist():
        smiles = source.table.smiles.get(int(predicted.graphs[row]))
        if smiles is None or wrong[row] < 0:
            continue
        far = "" if near is None or not np.isfinite(near[row]) else f", sim. {near[row]:.2f}"
        pictures.append(Picture(smiles, title=_says(source, predicted, row) + far))
    if not pictures:
        return Html("")
    caption = (
        f"The {len(pictures)} molecules of {split} with the largest errors; sim. is the similarity to "
        f"the nearest training molecule."
    )
    return element(
        "section",
        element("h2", "Worst predictions"),
        figure(draw_grid(pictures, columns=3, width=WIDTH, height=HEIGHT), caption),
        id="worst",
    )


def _says(source: Source, predicted: Predicted, row: int) -> str:
    """Truth and prediction of a row, of the output that is most wrong."""
    if source.kind == "classes":
        names = source.classes
        found = int(most_probable(predicted.values[row : row + 1])[0])
        return f"true {names[int(predicted.target[row, 0])]}, predicted {names[found]}"
    difference = np.nan_to_num(np.abs(predicted.values[row] - predicted.target[row]), nan=-1.0)
    if source.kind in ("values", "mixed") and len(source.names) > 1:
        spread = np.nanstd(predicted.target, axis=0)
        difference = difference / np.where(spread > 0, spread, 1.0)
    output = int(difference.argmax())
    name = f"{source.names[output]} " if len(source.names) > 1 else ""
    return f"{name}true {predicted.target[row, output]:.3g}, predicted {predicted.values[row, output]:.3g}"


def explained_section(source: Source) -> Html:
    """Contributions of atoms and bonds to predictions from the lowest to the highest, and of substructures."""
    split = judged_split(source)
    if source.table is None or split is None:
        return Html("")
    try:
        explainer = Explainer(source.runs, 0)
        found = [explainer(*each) for each in _chosen(source, source.splits[split], len(explainer.columns))]
    except InputError as error:
        return element("section", element("h2", "Explanations"), element("p", f"None: {error}"), id="explanations")
    if not found:
        return Html("")
    places = np.unique(np.linspace(0, len(found) - 1, min(DRAWN, len(found))).round().astype(int)).tolist()
    shown = [found[place] for place in places]
    drawn = [picture(draw(each, WIDTH, HEIGHT), f"{each.smiles}: {each.sentence()}") for each in shown]
    worst = max(abs(each.residual) for each in found)
    adds = (
        "add up to the prediction minus the baseline"
        if all(each.adds_up for each in found)
        else "do not add up exactly"
    )
    says = (
        f"Molecules of {split}, from the lowest to the highest prediction of {found[0].target}. Red raises the "
        f"prediction, blue lowers it, by integrated gradients; the contributions of a molecule {adds} (largest "
        f"residual {worst:.1e}). The baseline is a molecule of average atoms and pairs. A contribution describes the "
        f"network, not the chemistry."
    )
    return element(
        "section",
        element("h2", "Explanations"),
        element("p", says),
        element("div", *drawn, class_="molecules"),
        _substructures(found),
        id="explanations",
    )


def _substructures(found: list[Explanation]) -> Html:
    several = substructures(found, "brics", least=2)
    pieces = several if len(several) > 2 else substructures(found, "brics")
    if len(pieces) < 2:
        return Html("")
    caption = (
        f"BRICS fragments of {len(found)} such molecules that raise and lower the prediction most, each in one of "
        f"them, n occurrences. 'ckgconv explain RUN TABLE' averages over all molecules of a table."
    )
    return figure(draw_substructures(pieces, found[0].unit, 3), caption)


def _chosen(source: Source, predicted: Predicted, columns: int) -> list[tuple[str, list[float]]]:
    """Molecules whose first output is spread evenly over the range of predictions, with values of own columns."""
    assert source.table is not None
    sizes = source.data.node_ptr.diff().cpu().numpy()
    rows = [
        row
        for row, graph in enumerate(predicted.graphs.tolist())
        if graph in source.table.smiles and sizes[graph] <= MOST_ATOMS
    ]
    ordered = sorted(rows, key=lambda row: float(predicted.values[row, 0]))
    places = np.unique(np.linspace(0, len(ordered) - 1, min(EXPLAINED, len(ordered))).round().astype(int))
    graphs = [int(predicted.graphs[ordered[place]]) for place in places.tolist()]
    features = source.data.graph_features
    values = [[] if features is None or not columns else features[graph, -columns:].tolist() for graph in graphs]
    return [(source.table.smiles[graph], own) for graph, own in zip(graphs, values, strict=True)]
