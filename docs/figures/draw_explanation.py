"""Draw what atoms and bonds contribute to penalised logP, by the trained network of ZINC that comes with the package.

python docs/figures/draw_explanation.py
"""

from pathlib import Path

from ckgconv.explanation import Explainer
from ckgconv.explanation.drawing import Picture, draw_grid

HERE = Path(__file__).parent
MOLECULES = {
    "paracetamol": "CC(=O)Nc1ccc(O)cc1",
    "ibuprofen": "CC(C)Cc1ccc(C(C)C(=O)O)cc1",
    "chlorobenzene": "Clc1ccccc1",
}


def main() -> None:
    explainer = Explainer("zinc")
    pictures = []
    for name, smiles in MOLECULES.items():
        found = explainer(smiles)
        print(f"{name}: {found.sentence()}")
        title = f"{name}: {found.prediction:.2f} = {found.baseline:.2f} {found.total:+.2f}"
        pictures.append(Picture(smiles, dict(enumerate(found.atoms)), dict(enumerate(found.bonds)), title))
    svg = draw_grid(pictures, "contribution to penalised logP: polar atoms lower it", 3, 300, 230)
    (HERE / "explained.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
