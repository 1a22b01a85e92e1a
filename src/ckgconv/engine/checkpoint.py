"""Checkpoints: tensors as safetensors, everything else as JSON; nothing in them can run code.

    checkpoints/000012.safetensors     weights and their average, running statistics, moments
    checkpoints/000012.json            record so far, scale of the targets, digests

The JSON file is written last, so it marks a complete checkpoint. The newest two are kept. A checkpoint whose digests do
not match is reported, and the one before it is used.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import safetensors.torch
import torch
from pydantic import with_config
from safetensors import SafetensorError
from torch import Tensor, nn

from ckgconv.checks import InputError, check_group, require
from ckgconv.files import digest, read_text, write_text, write_whole
from ckgconv.recipe.format import group_of
from ckgconv.recipe.values import KEPT, read

KEPT_EPOCHS = 2
# What stands around the state in the JSON file of a checkpoint.
BEFORE_STATE, AFTER_STATE = '{"state": ', ', "tensors_sha256": '
CHECKPOINT = re.compile(r"[0-9]{6,18}\.(json|safetensors)")
T = TypeVar("T")


@with_config(KEPT)
@dataclass(frozen=True)
class Digests:
    """The JSON file of a checkpoint but for its state, which is read later by what knows it."""

    tensors_sha256: str
    state_sha256: str


@dataclass(frozen=True)
class Seal:
    """The JSON file of a checkpoint."""

    state: dict[str, Any]
    tensors_sha256: str
    state_sha256: str


def save(stem: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """`stem`.safetensors, then `stem`.json with the digests of both."""
    data = safetensors.torch.save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})
    write_whole(stem.with_suffix(".safetensors"), lambda part: part.write_bytes(data))
    body = json.dumps(state, sort_keys=True)
    digests = f'"{digest(data)}", "state_sha256": "{digest(body.encode())}"}}'
    write_text(stem.with_suffix(".json"), BEFORE_STATE + body + AFTER_STATE + digests)


def load(stem: Path, most_bytes: int | None = None) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """What `save` wrote; raises InputError where a file is missing, damaged or larger than `most_bytes`."""
    seal, file = _seal(stem), stem.with_suffix(".safetensors")
    try:
        size = file.stat().st_size
        require(
            most_bytes is None or size <= most_bytes,
            f"{file} has {size:,} bytes, and what its recipe describes has at most {most_bytes or 0:,}.",
        )
        require(file.is_file(), f"{file} is no plain file.")  # a pipe has no end
        data = file.read_bytes()
        intact = seal.tensors_sha256 == digest(data)
        tensors = safetensors.torch.load(data) if intact else {}
    except FileNotFoundError as error:
        raise InputError(f"{error.filename} is missing.") from error
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file} is damaged ({error}).") from error
    require(intact, f"{file} is damaged: its digest is not the one that was written.")
    return tensors, seal.state


def load_state(stem: Path) -> dict[str, Any]:
    """What `save` wrote beside the tensors, which are not read."""
    return _seal(stem).state


def _seal(stem: Path) -> Seal:
    """The JSON file of a checkpoint, with a state that has its digest."""
    file = stem.with_suffix(".json")
    require(file.exists(), f"{file} is missing.")
    try:
        text = read_text(file, "it is damaged.")
        values = group_of(text)
        state = values.pop("state", None)
        check_group("its state", state)
        seal = Seal(state, **vars(read(values, Digests)))
        require(_has_digest(text, seal), "its digest differs")
    except InputError as error:
        raise InputError(f"{file} is damaged ({error}).") from error
    return seal


def _has_digest(text: str, seal: Seal) -> bool:
    """Whether the state has its digest, as it stands in the file or, in older files, with its keys in order."""
    as_it_stands = text.removeprefix(BEFORE_STATE).rpartition(AFTER_STATE)[0]
    if seal.state_sha256 == digest(as_it_stands.encode()):
        return True
    return seal.state_sha256 == digest(json.dumps(seal.state, sort_keys=True).encode())


def save_epoch(folder: Path, epoch: int, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """A checkpoint after an epoch; all but the newest two are removed."""
    save(folder / f"{epoch:06d}", tensors, state)
    for old in stems(folder)[KEPT_EPOCHS:]:
        for suffix in (".json", ".safetensors"):
            old.with_suffix(suffix).unlink(missing_ok=True)


def stems(folder: Path) -> list[Path]:
    """Of the checkpoints in a folder, newest first; nothing else that lies there is one."""
    found = {path.with_suffix("") for path in folder.glob("[0-9]*") if CHECKPOINT.fullmatch(path.name)}
    return sorted(found, key=lambda stem: (int(stem.name), stem.name), reverse=True)


def load_newest(
    folder: Path, warn: Callable[[str], None], use: Callable[[dict[str, Tensor], dict[str, Any]], T], most_bytes: int
) -> T | None:
    """What `use` makes of the newest checkpoint that is sound, or None; `warn` is called for each one that is not."""
    for stem in stems(folder):
        try:
            return use(*load(stem, most_bytes))
        except InputError as error:
            warn(f"{error} The checkpoint before it is used.")
    return None


def training_tensors(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """The state of model and optimiser as tensors: `model.NAME`, and `optimizer.MOMENT.NAME` for each parameter."""
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        for moment, value in optimizer.state.get(parameter, {}).items():
            if value is not None:  # None: a moment that does not exist before the first step
                tensors[f"optimizer.{moment}.{name}"] = _stored(value, moment, optimizer)
    return tensors


def _stored(value: Any, moment: str, optimizer: torch.optim.Optimizer) -> Tensor:
    if not isinstance(value, Tensor | int | float):
        raise InputError(
            f"The optimiser {type(optimizer).__name__} keeps {moment!r} of each parameter as a {type(value).__name__}, "
            f"which a checkpoint cannot store: choose one whose state is tensors, or train without a folder."
        )
    return torch.as_tensor(value)


def restore_training(tensors: dict[str, Tensor], model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Load what `training_tensors` returned into a model and its optimiser."""
    weights = {name.removeprefix("model."): value for name, value in tensors.items() if name.startswith("model.")}
    model.load_state_dict(weights)
    parameters = dict(model.named_parameters())
    for key, value in tensors.items():
        if key.startswith("optimizer."):
            _, moment, name = key.split(".", 2)
            state = optimizer.state[parameters[name]]
            if moment in state:  # in place: a captured step reads these tensors
                state[moment].copy_(value)
            else:
                state[moment] = value if moment == "step" else value.to(parameters[name].device)
