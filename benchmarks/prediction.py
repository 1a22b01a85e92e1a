"""Molecules per second from SMILES to prediction, and peak memory, of `ckgconv predict` on a long table.

python benchmarks/prediction.py RUN molecules.smi.gz --rows 100000 --workers 2

The rows are those of the file, over and over again until there are enough. Wall time is that of the whole command, with
the start of its processes; CPU time is that of all of them, which says what an idle machine would need. Peak memory is
that of the largest process.
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
from itertools import cycle, islice
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("smiles", type=Path, help=".smi or .smi.gz")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--workers", type=int, default=2)
    given = parser.parse_args()
    opener = gzip.open if given.smiles.suffix == ".gz" else open
    with opener(given.smiles, "rt") as file:
        smiles = [line.split()[0] for line in islice(file, given.rows) if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "in.csv"), Path(folder, "out.csv")
        table.write_text("smiles\n" + "".join(f"{each}\n" for each in islice(cycle(smiles), given.rows)))
        load = os.getloadavg()[0]
        command = [sys.executable, "-m", "ckgconv", "predict", given.run, table, "-o", out, "--device", "cpu", "--json"]
        start = time.perf_counter()
        done = subprocess.run(
            [*map(str, command), "--workers", str(given.workers)],
            check=True,
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"},
        )
        wall = time.perf_counter() - start
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu = used.ru_utime + used.ru_stime
        written = sum(1 for _ in out.open()) - 1
    summary = {
        **json.loads(done.stdout),
        "written": written,
        "workers": given.workers,
        "wall_s": round(wall, 1),
        "cpu_s": round(cpu, 1),
        "molecules_per_s": round(given.rows / wall, 1),
        "molecules_per_cpu_s": round(given.rows / cpu, 1),
        "peak_mb_of_a_process": used.ru_maxrss // 1024,
        "load_before": round(load, 1),
    }
    summary.pop("out")
    print(json.dumps(summary, indent=1))


if __name__ == "__main__":
    main()
