"""What was fitted after training, kept in the folder of a run or an ensemble.

    uncertainty.json                 scores of validation rows, calibrations and the threshold of the domain
    training_molecules.safetensors   packed fingerprints and SMILES of the training molecules

Both are data only. A file that is damaged, or of a later format, is refused; a run without them predicts all the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError

from ckgconv.checks import InputError, require
from ckgconv.data.fingerprints import BITS, RADIUS, WIDTH
from ckgconv.engine.json_object import JsonObject
from ckgconv.files import digest, parse_json, read_text, valid_json, write_text, write_whole
from ckgconv.recipe.format import FORMAT, check_format
from ckgconv.uncertainty.applicability import Applicability
from ckgconv.uncertainty.calibration import Calibration
from ckgconv.uncertainty.intervals import Scores

FILE = "uncertainty.json"
MOLECULES = "training_molecules.safetensors"
# Ten million training molecules.
MOST_BYTES = 2**32


@dataclass(frozen=True)
class Uncertainty:
    """What was fitted for the T outputs of K members."""

    members: int  # K
    outputs: tuple[str, ...]  # [T] their names
    scores: tuple[Scores, ...] = ()  # [T] of values; empty for probabilities
    calibrations: tuple[Calibration | None, ...] = ()  # [T] of labels, [1] of classes; None: not fitted
    notes: tuple[str, ...] = ()  # why something was not fitted
    applicability: Applicability | None = None


def write_uncertainty(folder: Path, found: Uncertainty) -> None:
    """Both files; the one with numbers last, which names the digest of the other."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "members": found.members,
        "outputs": list(found.outputs),
        "scores": [{"floor": each.floor, "ascending": each.ascending.tolist()} for each in found.scores],
        "calibrations": [None if each is None else dict(vars(each)) for each in found.calibrations],
        "notes": list(found.notes),
    }
    domain = found.applicability
    if domain is not None:
        text = "\n".join(domain.smiles).encode()
        arrays: dict[str, NDArray[Any]] = {
            "fingerprints": domain.fingerprints,
            "smiles": np.frombuffer(text, dtype=np.uint8),
        }
        data = safetensors.numpy.save(arrays)
        write_whole(folder / MOLECULES, lambda part: part.write_bytes(data))
        values["applicability"] = {
            "threshold": domain.threshold,
            "bits": BITS,
            "radius": RADIUS,
            "molecules_sha256": digest(data),
        }
    write_text(folder / FILE, valid_json(values))


def read_uncertainty(folder: Path) -> Uncertainty | None:
    """What is kept in a folder; None where nothing is."""
    path = folder / FILE
    if not path.exists():
        return None
    remedy = f"restore it, or remove it to predict without ({FILE} in {folder})."
    try:
        values = JsonObject(parse_json(read_text(path, remedy)))
        check_format(values.values.get("format", FORMAT), "it")
        return _read(folder, values)
    except InputError as error:
        raise InputError(f"{path} cannot be used ({str(error).rstrip('.')}): {remedy}") from error


def _read(folder: Path, values: JsonObject) -> Uncertainty:
    outputs = values.get("outputs", tuple[str, ...])
    scores = tuple(_scores(each) for each in values.parts("scores"))
    found = values.values.get("calibrations", [])
    require(isinstance(found, list), "calibrations is not a list")
    calibrations = tuple(None if each is None else _calibration(JsonObject(each, "calibrations")) for each in found)
    require(len(scores) in (0, len(outputs)), f"it has scores of {len(scores)} outputs, not of {len(outputs)}")
    require(
        len(calibrations) in (0, 1, len(outputs)),
        f"it has calibrations of {len(calibrations)} outputs, not of {len(outputs)}",
    )
    return Uncertainty(
        members=values.get("members", int),
        outputs=outputs,
        scores=scores,
        calibrations=calibrations,
        notes=values.get("notes", tuple[str, ...], ()),
        applicability=_applicability(folder, values.part("applicability")) if "applicability" in values else None,
    )


def _scores(values: JsonObject) -> Scores:
    ascending = np.array(values.get("ascending", tuple[float, ...]), dtype=np.float64)
    floor = values.get_optional("floor", float)
    sound = bool((ascending >= 0).all()) and bool((np.diff(ascending) >= 0).all())
    require(sound, f"{values.name}.ascending is not ascending from 0")
    require(floor is None or 0 < floor < np.inf, f"{values.name}.floor is {floor}, not a positive number")
    return Scores(ascending, floor)


def _calibration(values: JsonObject) -> Calibration:
    slope, offset = values.get("slope", float), values.get("offset", float)
    require(0 < slope < np.inf and bool(np.isfinite(offset)), f"its calibration {slope}, {offset} is none")
    return Calibration(slope, offset)


def _applicability(folder: Path, values: JsonObject) -> Applicability:
    kind = values.get("bits", int), values.get("radius", int)
    require(kind == (BITS, RADIUS), f"its fingerprints have bits and radius {kind}, not {(BITS, RADIUS)}")
    threshold = values.get("threshold", float)
    require(0 <= threshold <= 1, f"its threshold is {threshold}, not a similarity")
    path = folder / MOLECULES
    try:
        require(path.is_file() and path.stat().st_size <= MOST_BYTES, f"{MOLECULES} is missing or too large")
        data = path.read_bytes()
        require(digest(data) == values.get("molecules_sha256", str), f"{MOLECULES} has another digest")
        arrays = safetensors.numpy.load(data)
        fingerprints, text = arrays["fingerprints"], arrays["smiles"]
    except (OSError, SafetensorError, KeyError) as error:
        raise InputError(f"{MOLECULES} is damaged: {error}") from error
    smiles = tuple(bytes(text).decode("utf-8", "replace").split("\n"))
    sound = fingerprints.dtype == np.uint8 and fingerprints.shape == (len(smiles), WIDTH)
    require(sound, f"{MOLECULES} has fingerprints of {list(fingerprints.shape)} for {len(smiles)} molecules")
    return Applicability(fingerprints, smiles, threshold)
