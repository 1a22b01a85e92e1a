"""One run of a method of `duel.py`: reads table.csv in the working folder, writes predicted.npy [M, T] of test rows.

    python duel_child.py ckgconv|scratch|forest|linear --targets NAME … [--classification] [--seed N]

Legend: M rows, T targets, F features.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from duel_methods import Array, Rows

if TYPE_CHECKING:
    from ckgconv.data import PackedDataset
    from ckgconv.recipe import Recipe

SPLITS = ("train", "val", "test")


def own_choice(rows: Rows, scratch: bool = False) -> Recipe:
    """The recipe of `ckgconv train` for a table."""
    from ckgconv.cli.initial_options import FeatureOptions, InitialOptions
    from ckgconv.cli.table_options import TableOptions
    from ckgconv.cli.train import resolve

    recipe = resolve(str(rows.folder / "table.csv"), TableOptions(target=list(rows.targets)), FeatureOptions())
    return InitialOptions(from_scratch=scratch).applied(recipe)


def graphs_of(rows: Rows, recipe: Recipe) -> PackedDataset:
    """The molecules of a table, with its splits."""
    import torch

    from ckgconv.data.packed_molecules import pack_molecules, read_molecules

    parts = {split: rows.of(split) for split in SPLITS}
    smiles = [row["smiles"] for split in SPLITS for row in parts[split]]
    owner = [split for split in SPLITS for _ in parts[split]]
    targets = torch.from_numpy(np.concatenate([rows.truth(split) for split in SPLITS])).float()
    molecules, _ = read_molecules(smiles, "molecule", recipe.data.most_atoms)
    kept = [row for row, each in enumerate(molecules) if each is not None]
    packed = pack_molecules([molecules[row] for row in kept], targets[kept], recipe.data)
    numbers = {split: [place for place, row in enumerate(kept) if owner[row] == split] for split in SPLITS}
    return packed.subset({split: torch.tensor(numbers[split]) for split in SPLITS})


def ckgconv(rows: Rows, seed: int, scratch: bool) -> Array:
    """`ckgconv train` with its own choice of settings, on the splits of the table."""
    from ckgconv import predict_smiles, train

    recipe = own_choice(rows, scratch)
    run = train(recipe, seed, graphs_of(rows, recipe), device="cpu", test=False)
    unknown = [0.0] * len(rows.targets)
    found = predict_smiles(run, [row["smiles"] for row in rows.of("test")])
    return np.array([unknown if value is None else value for value in found.values])


def forest(rows: Rows, seed: int) -> Array:
    """500 trees on counts of Morgan fragments, one forest for each target."""
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)

    def features(split: str) -> Any:
        molecules = [Chem.MolFromSmiles(row["smiles"]) for row in rows.of(split)]
        return np.array([generator.GetCountFingerprintAsNumPy(each) for each in molecules], dtype=np.float32)

    read, test, truth = features("train"), features("test"), rows.truth("train")
    columns = []
    for column in truth.T:
        known = ~np.isnan(column)
        if rows.classification:
            model = RandomForestClassifier(500, random_state=seed).fit(read[known], column[known])
            columns.append(model.predict_proba(test)[:, 1])
        else:
            columns.append(RandomForestRegressor(500, random_state=seed).fit(read[known], column[known]).predict(test))
    return np.stack(columns, axis=1)


def linear(rows: Rows) -> Array:
    """Ridge or logistic regression on standardised descriptors; of seven penalties the best on the validation split."""
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.metrics import mean_squared_error, roc_auc_score

    from ckgconv.data.descriptors import descriptors

    read = {split: descriptors([row["smiles"] for row in rows.of(split)]).astype(np.float64) for split in SPLITS}
    mean, spread = np.nanmean(read["train"], axis=0), np.nanstd(read["train"], axis=0)
    spread[spread == 0] = 1
    read = {name: np.nan_to_num((each - mean) / spread).clip(-5, 5) for name, each in read.items()}
    columns = []
    for place in range(len(rows.targets)):
        known = {split: ~np.isnan(rows.truth(split)[:, place]) for split in SPLITS}
        truth = {split: rows.truth(split)[known[split], place] for split in SPLITS}
        best: tuple[float, Array] | None = None
        for penalty in np.logspace(-1, 5, 7):
            if rows.classification:
                model = LogisticRegression(C=1 / penalty, max_iter=500)
                guess = model.fit(read["train"][known["train"]], truth["train"]).decision_function
                score = roc_auc_score(truth["val"], guess(read["val"][known["val"]]))
            else:
                guess = Ridge(penalty).fit(read["train"][known["train"]], truth["train"]).predict
                score = -mean_squared_error(truth["val"], guess(read["val"][known["val"]]))
            if best is None or score > best[0]:
                best = (score, guess(read["test"]))
        assert best is not None
        columns.append(best[1])
    return np.stack(columns, axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=["ckgconv", "scratch", "forest", "linear"])
    parser.add_argument("--targets", nargs="+", required=True)
    parser.add_argument("--classification", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    rows = Rows(Path.cwd(), tuple(options.targets), options.classification)
    if options.method == "forest":
        found = forest(rows, options.seed)
    elif options.method == "linear":
        found = linear(rows)
    else:
        found = ckgconv(rows, options.seed, options.method == "scratch")
    np.save("predicted.npy", found)


if __name__ == "__main__":
    main()
