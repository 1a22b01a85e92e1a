"""Settings of recipes as they must not be: every field of every kind of model gets values of all sorts.

    PYTHONPATH=src:tests python tests/faults/settings.py --cases 1000 --seed 0

A case trains one epoch with one value replaced, in a process of its own. It has to end with a result or with a
sentence.
"""

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from dataclasses import is_dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.child import outcome_of
from small_data import small_dataset

from ckgconv import recipe, train
from ckgconv.recipe import Recipe
from ckgconv.recipes import with_value

NAMES = (
    "zinc",
    "zinc-grit",
    "zinc-hybrid-parallel",
    "zinc-graphormer",
    "zinc-gatedgcn",
    "pattern",
    "nodes-homophilous",
)
DEEP = "[" * 500 + "]" * 500
NUMBERS = (
    *("-1", "0", "1", "2", "7", "64", "999", "65536", "1000000", "1000000000", str(2**31), str(2**63), "1" + "0" * 400),
    *("1" + "0" * 5000, "1e-300", "1e-8", "1e8", "1e300", "0.5", "0.999", "-0.5", "1.5", "NaN", "-Infinity"),
)
VALUES = (
    *NUMBERS,
    *(
        "true",
        "null",
        '""',
        "x",
        "../x",
        "global",
        "sparse_global",
        "spd",
        "rd",
        "heat",
        "rwse",
        "laplacian",
        "sgd",
        "layer",
    ),
    *("rrwp", "adamw", "batch", "none", "[]", "[1]", "[-1]", "[0]", "[1000000000]", "[[1]]", '["a"]', "{}", '{"a": 1}'),
    *(DEEP, json.dumps("\x1b[31m"), json.dumps("a" * 100_000), json.dumps([1] * 50_000)),
)


def small(name: str) -> Recipe:
    """A recipe that trains in a moment."""
    chosen = recipe(name)
    model = replace(chosen.model, width=8, steps=3, **({"blocks": 2} if hasattr(chosen.model, "blocks") else {}))
    training = replace(chosen.training, epochs=1, warmup_epochs=0, batch_size=3)
    return replace(chosen, model=model, training=training)


def values_of(part: object, prefix: str = "") -> dict[str, object]:
    """All values of a recipe, by their paths."""
    found: dict[str, object] = {}
    for name, value in vars(part).items():
        found |= values_of(value, f"{prefix}{name}.") if is_dataclass(value) else {f"{prefix}{name}": value}
    return found


def cases(count: int, seed: int) -> list[tuple[str, str]]:
    """Names of recipes and assignments, drawn from all of them; most numbers are replaced by numbers."""
    draw = random.Random(seed)
    known = {name: values_of(small(name)) for name in NAMES}
    found = []
    for _ in range(count):
        name = draw.choice(NAMES)
        path, value = draw.choice(list(known[name].items()))
        number = isinstance(value, int | float) and draw.random() < 0.8
        found.append((name, f"{path}={draw.choice(NUMBERS if number else VALUES)}"))
    return found


def attack(name: str, assignment: str) -> None:
    """Train a recipe with one value replaced."""
    base = small(name)
    chosen = with_value(base, assignment)
    training = replace(chosen.training, epochs=min(chosen.training.epochs, 2))  # many are no mistake, but take long
    train(replace(chosen, training=training), data=small_dataset(base), device="cpu")


def campaign(count: int, seed: int) -> list[str]:
    """Run the cases; returns a line for each that ended in anything but a result or a sentence."""
    bad, counted = [], Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, assignment in cases(count, seed):
            log = Path(folder) / "log"
            log.write_text("")
            outcome = outcome_of(lambda name=name, assignment=assignment: attack(name, assignment), log)
            counted[outcome] += 1
            if outcome not in ("done", "refused"):
                last = [line for line in log.read_text().splitlines() if line][-1:]
                bad.append(f"{outcome}: {name} {assignment[:80]}: {''.join(last)[:200]}")
    print(dict(counted))
    return bad


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    bad = campaign(options.cases, options.seed)
    print("\n".join(bad))
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
