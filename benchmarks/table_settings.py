"""Settings for tables of molecules compared on the splits of `duel.py`, by validation alone; no test row is predicted.

    python benchmarks/table_settings.py --data DATA --sets esol bbbp --seeds 0 --try training.learning_rate=0.0005

Each `--try` is one setting, several values with commas between, applied to what `ckgconv train TABLE` chooses; that
choice itself comes first. A line for each set and setting has mean and s.d. over splits and seeds of the columns that
`settings.py` explains, and every value of `val` in the order of the splits, so that settings can be compared pairwise.
"""

import argparse
import json
import tempfile
import time
from functools import reduce
from pathlib import Path

import torch
from duel import SETS, write_tables
from duel_child import graphs_of, own_choice
from settings import found

from ckgconv import train
from ckgconv.recipes import with_value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the tables")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--try", dest="tried", action="append", default=[], help="values, with commas between")
    options = parser.parse_args()
    torch.set_num_threads(1)
    for name in options.sets:
        with tempfile.TemporaryDirectory() as folder:
            tables = []
            for split in SETS[name].splits:
                place = Path(folder, split)
                place.mkdir()
                rows = write_tables(SETS[name], split, options.data, place)
                recipe = own_choice(rows)
                tables.append((recipe, graphs_of(rows, recipe)))
            for tried in ["", *options.tried]:
                start = time.process_time()
                records = [
                    train(reduce(with_value, filter(None, tried.split(",")), recipe), seed, data, test=False).record
                    for recipe, data in tables
                    for seed in options.seeds
                ]
                values = {"set": name, "setting": tried or "as it is", "runs": len(records), **found(records)}
                every = [record.best and round(record.best.val, 4) for record in records]
                print(json.dumps({**values, "every": every, "cpu_s": round(time.process_time() - start)}), flush=True)


if __name__ == "__main__":
    main()
