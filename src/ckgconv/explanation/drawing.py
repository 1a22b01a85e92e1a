"""Molecules as SVG with coloured atoms and bonds, and a colour bar that says what the colours mean.

    colour(v) = white + (red, or blue where v < 0) · |v|/limit        limit: the largest |v| of the drawing

Structures are drawn by rdkit; titles, bars and grids are SVG around them. All text is escaped. `rendered` draws the
same structure as PNG, for figures and tests.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

from ckgconv.checks import InputError
from ckgconv.explanation.explainer import Explanation

Colour = tuple[float, float, float]
# Red raises the prediction, blue lowers it: the ends of the map RdBu, which colour-blind readers can tell apart.
RAISES: Colour = (0.84, 0.19, 0.15)
LOWERS: Colour = (0.16, 0.44, 0.76)
WIDTH, HEIGHT = 420, 320
BAR, TITLE = 46, 24
RADIUS = 0.38  # of a coloured atom, in bond lengths
FONT = "font-family='Helvetica, Arial, sans-serif'"
# Pixels of a letter of a title or legend; text that is wider than the drawing is cut.
LETTER, LINE = 6.8, 16


@dataclass(frozen=True)
class Picture:
    """A structure with values to colour it by."""

    smiles: str
    atoms: Mapping[int, float] = field(default_factory=dict)  # value by atom
    bonds: Mapping[int, float] = field(default_factory=dict)  # value by bond
    title: str = ""
    ring: int | None = None  # an atom to mark
    numbers: bool = False  # whether atoms are numbered

    @property
    def largest(self) -> float:
        return max((abs(value) for value in (*self.atoms.values(), *self.bonds.values())), default=0.0)


def draw(explanation: Explanation, width: int = WIDTH, height: int = HEIGHT, numbers: bool = False) -> str:
    """An explained molecule as SVG: contributions by colour, with prediction and baseline in its title."""
    values = f": {explanation.prediction:.3g}, baseline {explanation.baseline:.3g}"
    title = printable(explanation.unit, fitting(width) - len(values)) + values
    picture = Picture(
        explanation.smiles,
        dict(enumerate(explanation.atoms)),
        dict(enumerate(explanation.bonds)),
        title,
        numbers=numbers,
    )
    beside = explanation.descriptors + sum(explanation.features.values())
    rest = f"\nbeside atoms and bonds: {beside:+.3g}" if beside else ""
    return draw_grid([picture], f"contribution to {explanation.unit}{rest}", 1, width, height)


def draw_grid(
    pictures: Sequence[Picture],
    legend: str = "",
    columns: int = 3,
    width: int = WIDTH,
    height: int = HEIGHT,
    limit: float | None = None,
) -> str:
    """Structures in rows, in one scale of colours with one bar below and lines of legend; without these, no bar.

    `limit` is the value of the strongest colour, by default the largest of all pictures.
    """
    limit = limit or max((each.largest for each in pictures), default=0.0) or 1.0
    columns = min(columns, max(len(pictures), 1))
    rows = -(-len(pictures) // columns)
    top = TITLE if any(each.title for each in pictures) else 0
    cell, total = height + top, width * columns
    full = rows * cell + (BAR + LINE * legend.count("\n") if legend else 0)
    cells = [
        _cell(picture, place % columns * width, place // columns * cell, width, height, top, limit)
        for place, picture in enumerate(pictures)
    ]
    bar = _bar(legend, limit, total, rows * cell) if legend else ""
    return (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {total} {full}' width='{total}' height='{full}'>"
        f"<rect width='{total}' height='{full}' fill='white'/>{''.join(cells)}{bar}</svg>"
    )


def rendered(picture: Picture, width: int = WIDTH, height: int = HEIGHT, limit: float | None = None) -> bytes:
    """One structure as PNG, without title and bar."""
    from rdkit.Chem.Draw.rdMolDraw2D import MolDraw2DCairo

    drawn: bytes = _structure(MolDraw2DCairo(width, height), picture, limit or picture.largest or 1.0)
    return drawn


def colour(value: float, limit: float) -> Colour:
    """White at 0, red at `limit`, blue at -`limit`; beyond it the colours stay."""
    strength = min(abs(value) / limit, 1.0)
    red, green, blue = RAISES if value > 0 else LOWERS
    return 1 - strength * (1 - red), 1 - strength * (1 - green), 1 - strength * (1 - blue)


def _cell(picture: Picture, x: int, y: int, width: int, height: int, top: int, limit: float) -> str:
    from rdkit.Chem.Draw.rdMolDraw2D import MolDraw2DSVG

    text: str = _structure(MolDraw2DSVG(width, height), picture, limit)
    inner = text[text.index("<svg") :]
    title = _text(picture.title, x + width / 2, y + 16, 13, width) if picture.title else ""
    placed = inner.replace("<svg", f"<svg x='{x}' y='{y + top}'", 1)
    return title + placed


def _structure(canvas: Any, picture: Picture, limit: float) -> Any:
    from rdkit import Chem
    from rdkit.Chem.Draw import rdMolDraw2D

    molecule = Chem.MolFromSmiles(picture.smiles)
    if molecule is None:
        raise InputError(f"{picture.smiles!r} is not a valid SMILES.")
    atoms = {atom: colour(value, limit) for atom, value in picture.atoms.items()}
    bonds = {bond: colour(value, limit) for bond, value in picture.bonds.items()}
    options = canvas.drawOptions()
    options.useBWAtomPalette()
    options.clearBackground = False
    options.highlightBondWidthMultiplier = 14
    options.fixedBondLength = 42.0
    options.padding = 0.08
    options.addAtomIndices = picture.numbers
    options.annotationFontScale = 0.6
    if picture.ring is not None:
        molecule.GetAtomWithIdx(picture.ring).SetProp("atomNote", "i")
    rdMolDraw2D.PrepareAndDrawMolecule(
        canvas,
        molecule,
        highlightAtoms=list(atoms),
        highlightAtomColors=atoms,
        highlightAtomRadii=dict.fromkeys(atoms, RADIUS),
        highlightBonds=list(bonds),
        highlightBondColors=bonds,
        kekulize=True,
    )
    canvas.FinishDrawing()
    return canvas.GetDrawingText()


def _bar(legend: str, limit: float, width: int, y: int) -> str:
    """The colour bar: three stops, its ends in numbers, its meaning below in lines."""
    left, length = width / 2 - 90, 180
    name = f"bar{y}x{width}"
    stops = "".join(
        f"<stop offset='{place}' stop-color='{_hex(colour(value, 1.0))}'/>"
        for place, value in ((0, -1), (0.5, 0), (1, 1))
    )
    return (
        f"<defs><linearGradient id='{name}'>{stops}</linearGradient></defs>"
        f"<rect x='{left}' y='{y + 6}' width='{length}' height='10' fill='url(#{name})' stroke='#999'/>"
        + _text(f"−{limit:.2g}", left - 8, y + 15, 12, width, "end")
        + _text(f"+{limit:.2g}", left + length + 8, y + 15, 12, width, "start")
        + "".join(
            _text(line, width / 2, y + 34 + LINE * place, 12, width) for place, line in enumerate(legend.split("\n"))
        )
    )


def fitting(width: int) -> int:
    """Letters that fit a width in pixels."""
    return int(width / LETTER)


def _text(text: str, x: float, y: float, size: int, width: int, anchor: str = "middle") -> str:
    """A line of text, cut to a width."""
    shown = printable(text, fitting(width))
    return (
        f"<text x='{x:g}' y='{y:g}' font-size='{size}' text-anchor='{anchor}' fill='#222' {FONT}>{escape(shown)}</text>"
    )


def printable(text: str, letters: int) -> str:
    """Text that XML may contain, cut to that many letters."""
    kept = "".join(each if each.isprintable() else "�" for each in text)
    return kept if len(kept) <= letters else kept[: max(letters - 1, 0)] + "…"


def _hex(rgb: Colour) -> str:
    return "#" + "".join(f"{round(255 * part):02x}" for part in rgb)
