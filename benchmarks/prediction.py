"""Molecules per second from SMILES to prediction, and peak memory, of `ckgconv predict` on a long table.

python benchmarks/prediction.py RUN molecules.smi.gz --rows 100000 --workers 2 [--figure memory.png]

The rows are those of the file; where more are asked for, its molecules follow again and again with their atoms in
random order, so that no two rows are alike. Wall time is that of the whole command, with the start of its processes;
CPU time is that of all of them, which says what an idle machine would need. Peak memory is that of the largest process;
the memory of all of them together, shared pages counted once, is read every few seconds.
"""

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import psutil
from rdkit import Chem

SECONDS_BETWEEN = 2.0


def rows_of(smiles: list[str]) -> Iterator[str]:
    """Each once as it is, then in random orders of its atoms."""
    yield from smiles
    for seed in count(1):
        for each in smiles:
            yield Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(each), 1, randomSeed=seed)[0]


def proportional_mb(process: psutil.Process) -> float:
    """Of a process and those it started; 0 of one that has just ended."""
    total = 0
    for each in (process, *process.children(recursive=True)):
        try:
            total += each.memory_full_info().pss
        except psutil.Error:
            continue
    return total / 2**20


def watched(command: list[str]) -> tuple[str, list[tuple[float, float]]]:
    """What a command prints, and its memory: seconds since its start, MB."""
    start, points = time.perf_counter(), []
    with tempfile.TemporaryFile("w+") as printed:
        with subprocess.Popen(command, stdout=printed, env=os.environ | {"OMP_NUM_THREADS": "1"}) as child:
            process = psutil.Process(child.pid)
            while child.poll() is None:
                points.append((round(time.perf_counter() - start, 1), round(proportional_mb(process), 1)))
                time.sleep(min(SECONDS_BETWEEN, 0.1 * len(points)))
        if child.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {child.returncode}.")
        printed.seek(0)
        return printed.read(), points


def draw(path: Path, points: list[tuple[float, float]], rows: int) -> None:
    seconds, memory = np.array(points).T
    figure, axes = plt.subplots(figsize=(7, 3.5), layout="constrained")
    axes.plot(seconds / 60, memory)
    axes.set(
        xlabel="minutes",
        ylabel="memory of all processes, MB",
        ylim=(0, 1.1 * memory.max()),
        title=f"Predicting a table of {rows:,} molecules",
    )
    figure.savefig(path, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("smiles", type=Path, help=".smi or .smi.gz")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--figure", type=Path, help="memory by time")
    given = parser.parse_args()
    opener = gzip.open if given.smiles.suffix == ".gz" else open
    with opener(given.smiles, "rt") as file:
        smiles = [line.split()[0] for line in islice(file, given.rows) if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "in.csv"), Path(folder, "out.csv")
        table.write_text("smiles\n" + "".join(f"{each}\n" for each in islice(rows_of(smiles), given.rows)))
        load = os.getloadavg()[0]
        command = [sys.executable, "-m", "ckgconv", "predict", given.run, table, "-o", out, "--device", "cpu", "--json"]
        start = time.perf_counter()
        printed, points = watched([*map(str, command), "--workers", str(given.workers)])
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime
        written = sum(1 for _ in out.open()) - 1
    tenths = np.linspace(0.1, 1.0, 10) * points[-1][0]
    summary = {
        **json.loads(printed),
        "written": written,
        "workers": given.workers,
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "molecules_per_s": round(given.rows / wall, 1),
        "molecules_per_cpu_s": round(given.rows / cpu, 1),
        "mb_of_all_at_tenths": [round(float(each)) for each in np.interp(tenths, *np.array(points).T)],
        "peak_mb_of_a_process": used.ru_maxrss // 1024,
        "load_before": round(load, 1),
    }
    if given.figure:
        draw(given.figure, points, given.rows)
    summary.pop("out")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
