"""Files that programs keep: records, checkpoints with fitting digests, campaigns, searches, ensembles, estimators and
what was fitted. The first line of a case names the file, the rest is its JSON.
"""

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from hostile.door import Door
from hostile.doors.recipes import VALUES
from hostile.mutations import damaged
from hypothesis import strategies as st

from ckgconv import recipe
from ckgconv.campaigns.plan import read_campaign
from ckgconv.engine import checkpoint
from ckgconv.engine.members import member_folders
from ckgconv.engine.record import Best, Epoch, Record, load_record, new_record
from ckgconv.engine.saved_state import State
from ckgconv.estimators import CKGCNClassifier
from ckgconv.files import digest, valid_json
from ckgconv.recipes import to_json
from ckgconv.searching.study import open_search
from ckgconv.uncertainty.kept import read_uncertainty


def record() -> dict[str, Any]:
    """The record of two epochs."""
    made = new_record(recipe("zinc-demo"), 3, 1000, torch.device("cpu"), "32")
    made.epochs = [Epoch(place, 1.0, 0.5, 1e-3, 0.25, 0.1) for place in range(2)]
    made.best = Best(1, 0.5, 0.4)
    made.metrics = {"test": {"rmse": 0.5}}
    return made.to_json()


FILES: dict[str, Any] = {
    "record.json": record(),
    "best.json": {"record": record(), "scale": {"mean": [0.0], "spread": [1.0]}, "groups": [{"betas": 1}]},
    "campaign.json": {
        "format": 1,
        "name": "small",
        "shows": "A sentence.",
        "final": False,
        "grids": [{"recipes": ["zinc-demo"], "seeds": [0], "changes": [["model.width=8"]], "precisions": ["32"]}],
    },
    "search.json": {
        "format": 1,
        "recipe": json.loads(to_json(recipe("zinc-demo"))),
        "space": {"model.width": {"choices": [8, 16]}, "training.learning_rate": {"low": 1e-4, "high": 1e-2}},
        "seed": 0,
        "precision": "32",
    },
    "ensemble.json": {"format": 1, "members": ["member0", "member1"]},
    "estimator.json": {
        "format": 1,
        "estimator": "CKGCNClassifier",
        "parameters": {"width": 8},
        "outputs": 1,
        "flat": True,
        "feature_names": ["smiles"],
        "classes": ["a", "b"],
        "classes_kind": "U",
    },
    "uncertainty.json": {
        "format": 1,
        "members": 2,
        "outputs": ["y"],
        "scores": [{"floor": 0.1, "ascending": [0.1, 0.2]}],
        "calibrations": [{"slope": 1.0, "offset": 0.0}, None][:1],
        "notes": ["A note."],
        "applicability": {"threshold": 0.2, "bits": 2048, "radius": 2, "molecules_sha256": ""},
    },
}


def inside(values: Any) -> list[Any]:
    """Groups and lists among values, all levels."""
    own = values.values() if isinstance(values, dict) else values if isinstance(values, list) else ()
    return [values, *(found for each in own if isinstance(each, dict | list) and each for found in inside(each))]


@st.composite
def changed(draw: st.DrawFn) -> bytes:
    """A file with a few values exchanged, removed or added."""
    name = draw(st.sampled_from(sorted(FILES)))
    values = copy.deepcopy(FILES[name])
    for _ in range(draw(st.integers(0, 3))):
        group = draw(st.sampled_from(inside(values)))
        key = draw(st.sampled_from([*(group if isinstance(group, dict) else range(len(group))), "other"]))
        if isinstance(group, list):
            group[0 if key == "other" else key] = copy.deepcopy(draw(VALUES))
        elif draw(st.integers(0, 4)):
            group[key] = copy.deepcopy(draw(VALUES))
        else:
            group.pop(key, None)
    return f"{name}\n{json.dumps(values)}".encode()


def read_checkpoint(folder: Path) -> None:
    """The state of a checkpoint, sealed where it is JSON."""
    file = folder / "best.json"
    try:
        state = json.loads(file.read_text(encoding="utf-8"))
        body = json.dumps(state, sort_keys=True)
        file.write_text(json.dumps({"state": state, "tensors_sha256": "", "state_sha256": digest(body.encode())}))
    except ValueError:
        pass
    state = State.from_json(checkpoint.load_state(folder / "best"), 1, str(file))
    assert np.isfinite([*state.scale.mean, *state.scale.spread]).all()


def read_record(folder: Path) -> None:
    """A record, which is written as it was read."""
    found = load_record(folder)
    assert valid_json(Record.from_json(found.to_json()).to_json()) == valid_json(found.to_json())


READERS: dict[str, Callable[[Path], object]] = {
    "record.json": read_record,
    "best.json": read_checkpoint,
    "campaign.json": lambda folder: read_campaign(str(folder)).runs(),
    "search.json": open_search,
    "ensemble.json": member_folders,
    "estimator.json": CKGCNClassifier.load,
    "uncertainty.json": read_uncertainty,
}


def enter(case: bytes, folder: Path) -> None:
    name, _, content = case.partition(b"\n")
    file = name.decode("utf-8", "replace")
    if file in READERS:
        (folder / file).write_bytes(content)
        READERS[file](folder)


DOOR = Door("kept-files", changed() | damaged(changed(), most=3), enter)
