"""Run folders that were forged: values of their files and tensors replaced, with digests that fit.

    PYTHONPATH=src:tests python tests/faults/folders.py --cases 1000 --seed 0

A case opens the run, evaluates and predicts, then resumes it, in a process of its own. Each has to end with a result or
with a sentence.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parents[1]))

from faults.child import outcome_of
from faults.interruptions import DATA, RECIPE, SEED, Campaign
from interruption import StopAfter

from ckgconv import InputError, open_run, train
from ckgconv.engine import checkpoint
from ckgconv.engine.predict_molecules import predict_smiles
from ckgconv.engine.recipe_file import read_recipe

VALUES: tuple[Any, ...] = (
    *(
        None,
        True,
        -1,
        0,
        1,
        7,
        10**6,
        2**63,
        10**400,
        0.5,
        -1.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "../x",
        "\x1b[2J",
    ),
    *([], [[]], [1], [{}], ["a"], {}, {"a": 1}, {"epoch": 0}, "a" * 10_000, list(range(1000))),
)


def places(values: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all values inside JSON."""
    inside = values.items() if isinstance(values, dict) else enumerate(values) if isinstance(values, list) else ()
    return [found for key, value in inside for found in ((*path, key), *places(value, (*path, key)))]


def forged(values: Any, draw: random.Random) -> tuple[Any, str]:
    """The same with one value replaced or removed, and what was done."""
    path = draw.choice(places(values))
    group = values
    for key in path[:-1]:
        group = group[key]
    if isinstance(group, dict) and draw.random() < 0.15:
        del group[path[-1]]
        return values, f"{'.'.join(map(str, path))} removed"
    group[path[-1]] = draw.choice(VALUES)
    return values, f"{'.'.join(map(str, path))} = {str(group[path[-1]])[:30]}"


def forge_tensor(tensors: dict[str, Tensor], draw: random.Random) -> str:
    """Replace one tensor; returns what was done."""
    name = draw.choice(sorted(tensors))
    value = tensors.pop(name)
    others: dict[str, Callable[[], dict[str, Tensor]]] = {
        "removed": lambda: {},
        "renamed": lambda: {f"{name}x": value},
        "larger": lambda: {name: torch.zeros(*value.shape, 3, dtype=value.dtype)},
        "empty": lambda: {name: torch.zeros(0, dtype=value.dtype)},
        "a number": lambda: {name: torch.zeros((), dtype=value.dtype)},
        "whole": lambda: {name: torch.zeros(value.shape, dtype=torch.int64)},
        "half": lambda: {name: torch.zeros(value.shape, dtype=torch.float16)},
        "double": lambda: {name: torch.zeros(value.shape, dtype=torch.float64)},
        "NaN": lambda: {name: value * float("nan") if value.is_floating_point() else value},
        "huge": lambda: {name: value * 0 + 1e30 if value.is_floating_point() else value},
    }
    kind = draw.choice(sorted(others))
    tensors.update(others[kind]())
    return f"{name} {kind}"


def forge(folder: Path, draw: random.Random) -> str:
    """Change one file, or a checkpoint with its digests; returns what was done."""
    stems = [folder / "best", *checkpoint.stems(folder / "checkpoints")]
    kind = draw.choice(("recipe.json", "record.json", "state", "state", "tensors", "tensors"))
    if kind.endswith(".json"):
        values, done = forged(json.loads((folder / kind).read_text()), draw)
        (folder / kind).write_text(json.dumps(values))
        return f"{kind}: {done}"
    stem = draw.choice(stems)
    for other in stems[1:]:
        if other != stem:  # otherwise it would be gone on with from there
            other.with_suffix(".json").unlink()
    tensors, state = checkpoint.load(stem)
    if kind == "state":
        state, done = forged(state, draw)
    else:
        done = forge_tensor(tensors, draw)
    checkpoint.save(stem, tensors, state)
    return f"{stem.name}: {done}"


def use(folder: Path) -> None:
    """Open, evaluate, predict; then resume, whatever came of it."""
    refusal = None
    try:
        run = open_run(folder, device="cpu", data=DATA)
        run.evaluate("val")
        predict_smiles(run, ["CCO"])
    except InputError as error:
        refusal = error
    train(read_recipe(folder / "recipe.json"), SEED, data=DATA, folder=folder, device="cpu", resume=True)
    if refusal is not None:
        raise refusal


def campaign(count: int, seed: int) -> list[str]:
    """Run the cases; returns a line for each that ended in anything but a result or a sentence."""
    draw, bad, counted = random.Random(seed), [], Counter()
    with tempfile.TemporaryDirectory() as place:
        started, folder = Campaign(Path(place)), Path(place) / "forged"
        stopped = Path(place) / "stopped"
        outcome_of(
            lambda: train(RECIPE, SEED, data=DATA, folder=stopped, device="cpu", watcher=StopAfter(5)), started.log
        )
        for _ in range(count):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(stopped, folder)
            done = forge(folder, draw)
            started.log.write_text("")
            outcome = outcome_of(lambda: use(folder), started.log)
            counted[outcome] += 1
            if outcome not in ("done", "refused"):
                last = [line for line in started.log.read_text().splitlines() if line][-1:]
                bad.append(f"{outcome}: {done}: {''.join(last)[:200]}")
    print(dict(counted), "with", RECIPE.name)
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
