"""An exported folder compared with its runs: the script of the folder predicts molecules in a process of its own.

That process cannot import ckgconv, so the comparison also shows that nothing of it is needed.
"""

import json
import math
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ckgconv.checks import require
from ckgconv.engine.predict_molecules import predict_smiles
from ckgconv.engine.run import Run

# One atom, chains, rings, charges, stereo, several parts, a metal, a larger drug; and what cannot be read.
MOLECULES = (
    *("C", "CCO", "CC(=O)O", "c1ccccc1", "C1CC1", "CC#N", "C[N+](C)(C)C", "CC(=O)[O-]", "N[C@@H](C)C(=O)O"),
    *("C/C=C/C", "CCO.CCN", "[Na+].[Cl-]", "Cn1cnc2c1c(=O)n(C)c(=O)n2C", "CC(=O)Oc1ccccc1C(=O)O"),
    *("O=S(=O)(c1ccc(cc1)Cl)N1CCOCC1", "CC(C)Cc1ccc(cc1)[C@@H](C)C(=O)O", "FC(F)(F)c1ccccc1Br", "C1CC"),
)
# Of a difference, relative to the largest prediction or 1.
TOLERANCE = 1e-3
# In the child process `import ckgconv` fails, and no setting of this one counts.
CHILD = (
    "import sys, runpy; sys.modules['ckgconv'] = None; script = sys.argv[1]; sys.argv = sys.argv[1:]; "
    "runpy.run_path(script, run_name='__main__')"
)
SECONDS = 600


def example_features(run: Run, count: int) -> list[list[float]] | None:
    """[count, C] values of a run's own columns about their training means, one of them unknown; None: it reads none."""
    columns, join = len(run.recipe.data.features), run.model.graph_join
    if not columns or join is None:
        return None
    mean, spread = (each[-columns:].double().cpu().tolist() for each in (join.mean, join.spread))
    rows = [[m + s * (row % 5 - 2) for m, s in zip(mean, spread, strict=True)] for row in range(count)]
    rows[-1] = [math.nan] * columns
    return rows


def expected_rows(
    runs: Sequence[Run], smiles: Sequence[str], features: list[list[float]] | None
) -> list[list[float] | None]:
    """What the exported folder of the runs is to predict for each SMILES: values, after them deviations of several."""
    members = [predict_smiles(run, smiles, features=features).values for run in runs]
    rows: list[list[float] | None] = []
    for each in zip(*members, strict=True):
        if any(values is None for values in each):
            rows.append(None)
        else:
            deviation = np.std(each, axis=0, ddof=1).tolist() if len(runs) > 1 else []
            rows.append(np.mean(each, axis=0).tolist() + deviation)
    return rows


def largest_difference(runs: Sequence[Run], folder: Path, onnx: bool, smiles: Sequence[str] = MOLECULES) -> float:
    """Between the predictions of runs and those of their exported folder; refused where they do not agree."""
    features = example_features(runs[0], len(smiles))
    expected = expected_rows(runs, smiles, features)
    lines = [
        " ".join([text, *map(repr, own)]) for text, own in zip(smiles, features or [[]] * len(smiles), strict=True)
    ]
    arguments = [sys.executable, "-I", "-c", CHILD, str(folder / "predict.py"), "--json", *(["--onnx"] if onnx else [])]
    done = subprocess.run(
        arguments, input="\n".join(lines), capture_output=True, text=True, timeout=SECONDS, check=False
    )
    last = (done.stderr.strip().splitlines() or ["it printed nothing"])[-1]
    name = "model.onnx" if onnx else "model.pt2"
    require(done.returncode == 0, f"{name} in {folder} does not run ({last}): export the other format with --format.")
    printed = json.loads(done.stdout.strip().splitlines()[-1])
    values, deviations = printed["values"], printed["deviations"] or [[]] * len(smiles)
    found = [None if one is None else one + other for one, other in zip(values, deviations, strict=True)]
    same = [(one is None) == (other is None) for one, other in zip(found, expected, strict=True)]
    require(
        all(same), f"{folder} reads {smiles[same.index(False)] if False in same else ''!r} otherwise than ckgconv does."
    )
    pairs = [(one, other) for one, other in zip(found, expected, strict=True) if other is not None]
    one, other = (np.array(each) for each in zip(*pairs, strict=True))
    difference = float(np.abs(one - other).max())
    most = TOLERANCE * max(1.0, float(np.abs(other).max()))
    require(
        difference <= most,
        f"{name} in {folder} differs from what was exported by {difference:.3g}, more than {most:.3g}: do not use it.",
    )
    return difference
