"""Records of runs that were never trained, for studies that read nothing else."""

import json
from dataclasses import asdict
from pathlib import Path

from ckgconv import recipe
from ckgconv.recipe import Recipe


def write_run(
    folder: Path, seed: int, test: float | None, chosen: Recipe | None = None, epochs: int = 4, **more: object
) -> Path:
    """A record of `epochs` epochs; `test` is None for a run that is not finished."""
    folder.mkdir(parents=True)
    chosen = chosen or recipe("zinc")
    entries = [
        {"epoch": place, "train_loss": 1.0 / (place + 1), "val": 0.9 / (place + 1), "lr": 1e-3, "seconds": 2.0}
        for place in range(epochs)
    ]
    record = {
        "recipe": asdict(chosen),
        "seed": seed,
        "metric": chosen.training.metric,
        "epochs": entries,
        "best": {"epoch": epochs - 1, "val": entries[-1]["val"], "test": test} if entries else None,
        "parameters": 1000,
        "wall_s": 10.0,
        "peak_memory_mb": 50,
        **more,
    }
    (folder / "record.json").write_text(json.dumps(record))
    return folder


def write_runs(folder: Path, name: str, tests: list[float | None], **options: object) -> list[Path]:
    """Several seeds."""
    return [write_run(folder / f"{name}{seed}", seed, test, **options) for seed, test in enumerate(tests)]
