"""Small sets of molecules: ckgconv against chemprop 2, a random forest and linear models, on the same rows.

    python -m venv chemprop && chemprop/bin/pip install torch==2.13.0 chemprop==2.3.1
    python benchmarks/duel.py --data DATA --chemprop chemprop/bin/chemprop
    python benchmarks/duel.py --page

DATA holds esol.csv.gz, lipophilicity.csv.gz, bbbp.csv.gz, tox21.csv.gz and hiv.csv.gz: a column `smiles`, columns of
targets, and columns `split_…` with the words train, val and test. Each run is a process of its own with one thread; its
result is kept as runs/SET-SPLIT-METHOD-seedN.json as soon as it is there, and a run whose result is kept is not
repeated.

    ckgconv    ckgconv train, as it comes: the pretrained network, descriptors, settings by the number of rows
    scratch    the same from random weights
    chemprop   chemprop train, as it comes: 50 epochs, the epoch of the best validation loss
    forest     500 trees on counts of Morgan fragments (radius 2, 2048 bits)
    linear     ridge or logistic regression on RDKit descriptors, its penalty chosen by the validation split
"""

import argparse
import csv
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from duel_methods import METHODS, Rows
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from ckgconv.data.molecules import canonical

RANDOM = ("split_random122", "split_random123", "split_random124")
FOLDER = Path(__file__).parents[1] / "results" / "duel"


@dataclass(frozen=True)
class Set:
    """A table, and how it is judged."""

    file: str
    targets: tuple[str, ...]
    metric: str  # "rmse" or "auroc"
    splits: tuple[str, ...]
    seeds: int = 1  # runs on each split


TOX21 = ("NR-AR", "NR-AR-LBD", "NR-AhR", "NR-Aromatase", "NR-ER", "NR-ER-LBD", "NR-PPAR-gamma", "SR-ARE", "SR-ATAD5")
SETS = {
    "esol": Set("esol", ("measured log solubility in mols per litre",), "rmse", RANDOM),
    "bbbp": Set("bbbp", ("p_np",), "auroc", ("split_scaffold",), seeds=3),
    "lipophilicity": Set("lipophilicity", ("exp",), "rmse", RANDOM),
    "tox21": Set("tox21", (*TOX21, "SR-HSE", "SR-MMP", "SR-p53"), "auroc", RANDOM),
    "hiv": Set("hiv", ("HIV_active",), "auroc", ("split_scaffold",), seeds=3),
}


@dataclass(frozen=True)
class Job:
    """One run."""

    set: str
    split: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        return f"{self.set}-{self.split}-{self.method}-seed{self.seed}"


def jobs(methods: list[str]) -> list[Job]:
    """All runs, the first of every set before the second of any."""
    found = [
        (number, Job(name, split, method, seed))
        for name, each in SETS.items()
        for number, (split, seed) in enumerate(product(each.splits, range(each.seeds)))
        for method in methods
    ]
    return [job for _, job in sorted(found, key=lambda entry: entry[0])]


def write_tables(chosen: Set, split: str, data: Path, folder: Path) -> Rows:
    """The table with one column `split`; rows whose SMILES RDKit cannot read are left out for every method."""
    with gzip.open(data / f"{chosen.file}.csv.gz", "rt", newline="") as file:
        rows = [row for row in csv.DictReader(file) if canonical(row["smiles"].strip()) is not None]
    columns = ("smiles", *chosen.targets, "split")
    with (folder / "table.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for row in rows:
            writer.writerow([row["smiles"].strip(), *(row[name] for name in chosen.targets), row[split]])
    return Rows(folder, chosen.targets, chosen.metric == "auroc")


def scores(rows: Rows, predicted: NDArray[np.float64]) -> dict[str, float]:
    """Of predictions for the test split [M, T]: RMSE and MAE, or the mean of the targets' ROC-AUC."""
    truth = rows.truth("test")
    if not rows.classification:
        error = predicted - truth
        return {"rmse": float(np.sqrt((error**2).mean())), "mae": float(np.abs(error).mean())}
    areas = []
    for column, guess in zip(truth.T, predicted.T, strict=True):
        known = ~np.isnan(column)
        if len(set(column[known])) == 2:
            areas.append(roc_auc_score(column[known], guess[known]))
    return {"auroc": float(np.mean(areas))}


def run(job: Job, options: argparse.Namespace) -> dict[str, Any]:
    """One run in a process of its own; wall and CPU seconds are those of the process."""
    with tempfile.TemporaryDirectory() as name:
        rows = write_tables(SETS[job.set], job.split, options.data, Path(name))
        command, read = METHODS[job.method](rows, job.seed, options)
        threads = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(command, cwd=name, env={**os.environ, **threads}, capture_output=True, text=True)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
        if done.returncode:
            raise SystemExit(f"{job.name} failed:\n{done.stderr[-3000:]}")
        metrics = scores(rows, read())
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {
        "set": job.set,
        "split": job.split,
        "method": job.method,
        "seed": job.seed,
        **metrics,
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "commit": commit(),
    }


def commit() -> str:
    found = subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, cwd=FOLDER.parent)
    return found.stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the tables")
    parser.add_argument("--chemprop", default="chemprop", help="the command, in an environment of its own")
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--only", nargs="+", default=[""], help="runs whose names contain one of these")
    parser.add_argument("--out", type=Path, default=FOLDER)
    parser.add_argument("--page", action="store_true", help="write README.md, table.json and figure.png")
    options = parser.parse_args()
    if options.page:
        from duel_page import write_page

        write_page(options.out)
        return
    if options.data is None:
        raise SystemExit("Give --data, the folder of the tables.")
    options.data = options.data.resolve()
    (options.out / "runs").mkdir(parents=True, exist_ok=True)
    for job in jobs(options.methods):
        kept = options.out / "runs" / f"{job.name}.json"
        if kept.exists() or not any(part in job.name for part in options.only):
            continue
        result = run(job, options)
        kept.write_text(json.dumps(result, indent=1) + "\n")
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    sys.exit(main())
