"""Settings for tables of molecules compared on the splits of `duel.py`, by validation alone; no test row is predicted.

    python benchmarks/table_settings.py --data DATA --sets esol bbbp --seeds 0 --try training.learning_rate=0.0005

Each `--try` is one setting, several values with commas between, applied to what `ckgconv train TABLE` chooses; that
choice itself comes first. A line for each set and setting has mean and s.d. over splits and seeds of the columns that
`settings.py` explains, and every value of `val` in the order of the splits, so that settings can be compared pairwise.

Where a GPU is, RDKit may not be. Molecules are packed on one machine, and the folder is all that the other one needs:

    python benchmarks/table_settings.py --data DATA --pack packed
    python benchmarks/table_settings.py --packed packed --device cuda --precision bf16 --try training.init=RUN
"""

import argparse
import json
import tempfile
import time
from collections.abc import Iterator
from functools import reduce
from pathlib import Path

import torch
from duel import SETS, write_tables
from duel_child import graphs_of, own_choice
from settings import found

from ckgconv import train
from ckgconv.data import PackedDataset
from ckgconv.data.packed import load_packed, save_packed
from ckgconv.recipe import Recipe
from ckgconv.recipes import from_json, to_json, with_value

Table = tuple[Recipe, PackedDataset]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--data", type=Path, help="folder of the tables")
    where.add_argument("--packed", type=Path, help="folder that --pack has written")
    parser.add_argument("--pack", type=Path, help="write the molecules of every split there, and train nothing")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--try", dest="tried", action="append", default=[], help="values, with commas between")
    parser.add_argument("--device", default="cpu", help="auto, cpu or cuda")
    parser.add_argument("--precision", default="32", help="32, tf32, bf16 or 64")
    options = parser.parse_args()
    if options.pack and (options.packed or options.tried):
        parser.error("--pack writes the molecules of --data and trains nothing: leave out --packed and --try.")
    torch.set_num_threads(1)
    for name in options.sets:
        tables = packed(name, options.packed) if options.packed else read(name, options.data)
        if options.pack:
            pack(name, tables, options.pack)
        else:
            compare(name, list(tables), options)


def read(name: str, data: Path) -> Iterator[Table]:
    """The choice of `ckgconv train TABLE` and the molecules, of each split of a set."""
    for split in SETS[name].splits:
        with tempfile.TemporaryDirectory() as folder:
            rows = write_tables(SETS[name], split, data, Path(folder))
            recipe = own_choice(rows)
            yield recipe, graphs_of(rows, recipe)


def pack(name: str, tables: Iterator[Table], folder: Path) -> None:
    """Two files for each split."""
    folder.mkdir(parents=True, exist_ok=True)
    for (recipe, data), split in zip(tables, SETS[name].splits, strict=True):
        save_packed(data, folder / f"{name}-{split}.npz")
        (folder / f"{name}-{split}.json").write_text(to_json(recipe))


def packed(name: str, folder: Path) -> Iterator[Table]:
    """What `pack` has written."""
    for split in SETS[name].splits:
        file = folder / f"{name}-{split}.json"
        yield from_json(file.read_text(), str(file)), load_packed(file.with_suffix(".npz"))


def compare(name: str, tables: list[Table], options: argparse.Namespace) -> None:
    """A line for each setting."""
    for tried in ["", *options.tried]:
        start = time.process_time()
        records = [
            train(
                reduce(with_value, filter(None, tried.split(",")), recipe),
                seed,
                data,
                device=options.device,
                precision=options.precision,
                test=False,
            ).record
            for recipe, data in tables
            for seed in options.seeds
        ]
        values = {"set": name, "setting": tried or "as it is", "runs": len(records), **found(records)}
        every = [record.best and round(record.best.val, 4) for record in records]
        print(json.dumps({**values, "every": every, "cpu_s": round(time.process_time() - start)}), flush=True)


if __name__ == "__main__":
    main()
