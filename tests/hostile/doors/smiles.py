"""SMILES: text of atoms, bonds, rings and branches, some of it valid, some of it far too long."""

from pathlib import Path

from hostile.door import Door
from hostile.mutations import damaged
from hypothesis import strategies as st

from ckgconv.data.molecules import ATOM_SIZES, BOND_SIZES, scaffold
from ckgconv.data.tables import pack_molecules, read_molecules

PIECES = [
    *(
        "C",
        "c",
        "N",
        "n",
        "O",
        "[nH]",
        "[C@@H]",
        "[C@]",
        "[13CH4]",
        "[U+6]",
        "[Na+].[Cl-]",
        "*",
        "[H]",
        "[2H]",
        "[Fe+2]",
    ),
    *(
        "=",
        "#",
        "$",
        "/",
        "\\",
        ":",
        "~",
        ".",
        "-",
        "(",
        ")",
        "1",
        "2",
        "%10",
        "%99",
        "0",
        "[",
        "]",
        "@",
        "+",
        "->",
        ">",
    ),
    *(
        "c1ccccc1",
        "C1CC1",
        "F/C=C/F",
        "N#N",
        "[O-]",
        "[N+](=O)[O-]",
        "S(=O)(=O)",
        "P",
        "B",
        "Si",
        "é",
        "\x00",
        " ",
        "\t",
    ),
    *("{", "}", "|", "[C:1]", "[#6]", "[999C]", "[C+99]", "[CH99]", "C%(100)", "Q", "💥"),
]
WHOLE = ["CC(=O)Oc1ccccc1C(=O)O", "C[C@@H]1CN(C(=O)c2ccccc2)CC[C@H]1[NH3+]", "O=[Xe](=O)=O", "[Na+].[Cl-]"]


@st.composite
def text(draw: st.DrawFn) -> str:
    """One SMILES, or what looks like one; sometimes a piece is repeated many times."""
    pieces = draw(st.lists(st.sampled_from(PIECES), max_size=12))
    repeated = draw(st.sampled_from(PIECES)) * draw(st.sampled_from([1, 1, 10, 100, 1_100, 5_000, 40_000]))
    return draw(st.sampled_from(["".join(pieces), repeated, "".join(pieces) + repeated, *WHOLE]))


CASES = damaged(st.lists(text(), min_size=1, max_size=4).map(lambda lines: "\n".join(lines).encode()), most=2)


def enter(case: bytes, folder: Path) -> None:
    lines = case.decode("utf-8", "replace").split("\n")
    for featuriser in ("molecule", "zinc"):
        molecules, reasons = read_molecules(lines, featuriser)
        assert [each is None for each in molecules] == [bool(reason) for reason in reasons]
        assert all(reason.isprintable() and len(reason) < 500 for reason in reasons)
        valid = [each for each in molecules if each is not None]
        for each in valid if featuriser == "molecule" else ():
            assert (each.x < ATOM_SIZES).all()
            assert (each.edge_attr < BOND_SIZES).all()
        if valid:
            pack_molecules(valid)
    for line, each in zip(lines, molecules, strict=True):
        if each is not None:
            scaffold(line)


DOOR = Door("smiles", CASES, enter)
