"""Draw which share of the test targets lies in intervals of each level.

python docs/figures/draw_coverage.py runs/logp-ensemble
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import numpy as np
from matplotlib import pyplot

from ckgconv.engine.ensemble import open_runs
from ckgconv.engine.members import is_ensemble
from ckgconv.engine.opened import open_run
from ckgconv.uncertainty.judge import judge
from ckgconv.uncertainty.kept import read_uncertainty

HERE = Path(__file__).parent
LEVELS = np.arange(0.1, 0.96, 0.05)


def main(folder: Path) -> None:
    runs = open_runs([folder], "cpu").runs if is_ensemble(folder) else (open_run(folder, "cpu"),)
    kept = read_uncertainty(folder)
    assert kept is not None, f"{folder} has no uncertainty.json"
    found = [next(iter(judge(runs, kept, "test", float(level)).coverage.values())) for level in LEVELS]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 4), layout="constrained")
    left.plot([0, 1], [0, 1], color="#999999", linewidth=1, label="as promised")
    left.plot(LEVELS, [each.share for each in found], marker="o", label=f"measured, {found[0].rows} test rows")
    left.set(xlabel="level of the intervals", ylabel="share of targets inside", xlim=(0, 1), ylim=(0, 1))
    left.set_title("Intervals contain about as many\ntargets as their level says")
    left.legend()
    right.plot(LEVELS, [each.width for each in found], marker="o", color="#c05a1c")
    right.set(xlabel="level of the intervals", ylabel="mean width, in units of the target", ylim=(0, None))
    right.set_title("A higher level costs width")
    figure.savefig(HERE / "coverage.png", dpi=130)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
