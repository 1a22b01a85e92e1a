"""What the checks at the doors cost: reading ZINC and opening a run, CPU milliseconds, least and median.

    python benchmarks/doors.py [--run results/zinc/seeds/seed0] [--rounds 40]

Another checkout is timed with PYTHONPATH=OTHER/src.
"""

import argparse
import statistics
import time
from collections.abc import Callable

import torch

import ckgconv
from ckgconv.data import zinc


def cost(call: Callable[[], object], rounds: int) -> str:
    """Least and median, after one call that fills caches."""
    call()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        call()
        times.append(1000 * (time.process_time() - start))
    return f"{min(times):.1f} ({statistics.median(times):.1f}) ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", default="results/zinc/seeds/seed0")
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(ckgconv.__file__)
    print("ckgconv.data.zinc():", cost(zinc, options.rounds))
    print(f"open_run({options.run!r}):", cost(lambda: ckgconv.open_run(options.run, device="cpu"), options.rounds))


if __name__ == "__main__":
    main()
