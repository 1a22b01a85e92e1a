"""Seconds of a training epoch, the median of several, of this checkout and of another in turn.

    python benchmarks/epochs.py --precision bf16 --epochs 12 --rounds 2 --against ../old

One epoch differs from the next by several percent; the median of twelve repeats to half a percent on an idle H200. Both
checkouts run the same batches with the same seeds: equal losses are printed as such.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

WARM_UP = 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default="zinc")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="bf16", help="32, tf32, bf16 or 64")
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--limit", type=int, help="the first graphs of each split")
    parser.add_argument("--rounds", type=int, default=1, help="with --against: how often each checkout is timed")
    parser.add_argument("--against", type=Path, help="another checkout")
    options = parser.parse_args()
    if options.against is None:
        print(json.dumps(measure(options)))
        return
    here = Path(__file__).parents[1]
    for _ in range(options.rounds):
        reports = [elsewhere(checkout, options) for checkout in (options.against, here)]
        ratio = reports[1]["median_s"] / reports[0]["median_s"]
        same = "equal" if reports[0]["losses"] == reports[1]["losses"] else "different"
        shown = [{key: value for key, value in report.items() if key != "losses"} for report in reports]
        print(json.dumps({"other": shown[0], "this": shown[1], "this / other": round(ratio, 4), "losses": same}))


def elsewhere(checkout: Path, options: argparse.Namespace) -> dict[str, object]:
    """This script on the source of a checkout."""
    command = [sys.executable, __file__, "--recipe", options.recipe, "--device", options.device]
    command += ["--precision", options.precision, "--epochs", str(options.epochs)]
    command += [] if options.limit is None else ["--limit", str(options.limit)]
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve() / "src")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def measure(options: argparse.Namespace) -> dict[str, object]:
    """Median and least seconds, losses and memory."""
    import torch

    from ckgconv import CKGCN, recipe
    from ckgconv.data import load
    from ckgconv.engine.run import make_learner
    from ckgconv.engine.setup import make_fabric
    from ckgconv.recipes import with_value

    try:
        from ckgconv.engine.epoch import train_epoch
    except ImportError:  # commits before 8b97c10
        from ckgconv.engine.loop import train_epoch  # type: ignore[no-redef]

    chosen = recipe(options.recipe)
    if options.limit is not None:
        chosen = with_value(chosen, f"data.limit={options.limit}")
    torch.manual_seed(0)
    fabric = make_fabric(options.device, options.precision)
    learner = make_learner(fabric, CKGCN.from_recipe(chosen), load(chosen.data, None), chosen)
    times, losses = [], []
    for epoch in range(options.epochs + WARM_UP):
        torch.manual_seed(epoch)
        start = time.perf_counter()
        # A captured epoch reads its losses back, and so ends with the device idle.
        losses.append(train_epoch(learner, chosen.training.warmup_epochs, lambda count, loss: None)["train_loss"])
        times.append(time.perf_counter() - start)
    on_gpu = fabric.device.type == "cuda"
    return {
        "precision": options.precision,
        "median_s": round(statistics.median(times[WARM_UP:]), 4),
        "least_s": round(min(times[WARM_UP:]), 4),
        "peak_memory_mb": torch.cuda.max_memory_allocated() // 2**20 if on_gpu else None,
        "losses": losses,
    }


if __name__ == "__main__":
    main()
