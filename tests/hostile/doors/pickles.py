"""Archives of the benchmarks: pickles and files of torch.save, intact, forged and damaged."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import torch
from hostile.door import Door
from hostile.mutations import damaged
from hypothesis import strategies as st

from ckgconv.data.plain_pickle import read_pickle, read_torch


class Calls:
    """An object whose pickle would write a file outside the folder of the case."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.mkdir, ("../ran",)


def saved(value: object, zip_form: bool) -> bytes:
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zip_form)
    return file.getvalue()


GRAPH = {"x": torch.rand(3, 2), "edge_index": torch.tensor([[0, 1], [1, 2]]), "y": torch.tensor([1]), "n": None}
SPLIT = {"train": np.arange(3), "val": [3], "test": np.array([4], dtype=np.int32)}
WHOLE = [
    *(b"t" + saved([[GRAPH], [GRAPH, GRAPH], []], form) for form in (True, False)),
    *(
        b"p" + pickle.dumps(value, protocol)
        for value in (GRAPH, SPLIT, [1.5, "a", b"b", None])
        for protocol in (0, 2, 4)
    ),
    *(b"p" + pickle.dumps([Calls(), SPLIT], protocol) for protocol in (0, 2, 4)),
    b"t" + saved([Calls()], False),
]


def enter(case: bytes, folder: Path) -> None:
    if case[:1] == b"p":
        read_pickle(case[1:])
        return
    path = folder / "archive.pt"
    path.write_bytes(case[1:])
    read_torch(path)


DOOR = Door("pickles", damaged(st.sampled_from(WHOLE), most=5), enter)
