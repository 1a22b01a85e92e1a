"""Many random cases for every door: `make hostile N=10000`, or a few of them in the tests.

The cases follow from the seed. A failure is written to `regressions/DOOR/`, whose files the tests run from then on.
"""

import argparse
import hashlib
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from hostile.door import Door
from hostile.doors import DOORS
from hostile.runner import Children, Outcome
from hypothesis import HealthCheck, Phase, given, seed, settings

ATTACKED = [name for name in DOORS if name != "probe"]
REGRESSIONS = Path(__file__).with_name("regressions")
SEED = 20261117


@dataclass
class Tally:
    """Outcomes of the cases of a door."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: dict[bytes, Outcome] = field(default_factory=dict)
    slowest: float = 0.0

    def add(self, case: bytes, outcome: Outcome, seconds: float) -> None:
        self.counts[outcome.kind] += 1
        self.slowest = max(self.slowest, seconds)
        if not outcome.good:
            self.failures[case] = outcome


def attack(door: Door, cases: int, number: int, children: Children) -> Tally:
    """Hand that many cases, drawn from a seed, to a door."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=cases,
        phases=[Phase.generate],
        database=None,
        deadline=None,
        derandomize=False,
        suppress_health_check=list(HealthCheck),
    )
    @given(door.cases)
    def each(case: bytes) -> None:
        start = time.monotonic()
        outcome = children.run(door.name, case)
        tally.add(case, outcome, time.monotonic() - start)

    each()
    return tally


def keep(door: str, case: bytes) -> Path:
    """Write a case that failed to a file that the tests run."""
    path = REGRESSIONS / door / hashlib.sha256(case).hexdigest()[:16]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(case)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="over all doors")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--doors", nargs="*", default=ATTACKED, choices=ATTACKED)
    options = parser.parse_args()
    children = Children()
    children.run("probe", b"result")  # starts the first child
    failed = 0
    print(f"seed {options.seed}\n\n| door | cases | results | refused | failures | slowest, s |", flush=True)
    print("|---|---|---|---|---|---|", flush=True)
    for name in options.doors:
        tally = attack(DOORS[name], options.cases // len(options.doors), options.seed, children)
        counts = tally.counts
        failures = counts.total() - counts["result"] - counts["refused"]
        row = (name, counts.total(), counts["result"], counts["refused"], failures, f"{tally.slowest:.1f}")
        print("| " + " | ".join(map(str, row)) + " |", flush=True)
        for case, outcome in tally.failures.items():
            print(f"  {outcome.kind}: {outcome.detail} ({keep(name, case)})", flush=True)
        failed += failures
    children.close()
    raise SystemExit(1 if failed else 0)


if __name__ == "__main__":
    main()
