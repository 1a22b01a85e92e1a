"""What was fitted after training, kept in the folder of a run or an ensemble.

    uncertainty.json                 scores of validation rows, calibrations and the threshold of the domain
    training_molecules.safetensors   packed fingerprints and SMILES of the training molecules

Both are data only. A file that is damaged, or of a later format, is refused; a run without them predicts all the same.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from pydantic import FailFast, Field, FiniteFloat, with_config
from safetensors import SafetensorError

from ckgconv.checks import InputError, require
from ckgconv.data.fingerprints import BITS, RADIUS, WIDTH
from ckgconv.files import digest, read_text, valid_json, write_text, write_whole
from ckgconv.recipe.format import FORMAT, group_of
from ckgconv.recipe.values import KEPT, read
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
    scores: tuple[Scores | None, ...] = ()  # [T] of values; None for a probability, empty for probabilities alone
    calibrations: tuple[Calibration | None, ...] = ()  # [T], of classes alone [1]; None: a value, or not fitted
    notes: tuple[str, ...] = ()  # why something was not fitted
    applicability: Applicability | None = None


def write_uncertainty(folder: Path, found: Uncertainty) -> None:
    """Both files; the one with numbers last, which names the digest of the other."""
    values: dict[str, Any] = {
        "format": FORMAT,
        "members": found.members,
        "outputs": list(found.outputs),
        "scores": [
            None if each is None else {"floor": each.floor, "ascending": each.ascending.tolist()}
            for each in found.scores
        ],
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


@dataclass(frozen=True)
class KeptScores:
    """`Scores` in the file."""

    ascending: Annotated[tuple[FiniteFloat, ...], FailFast()]
    floor: Annotated[FiniteFloat, Field(gt=0)] | None = None

    def scores(self, name: str) -> Scores:
        """As an array [n], which `name` names in error messages."""
        ascending = np.array(self.ascending, dtype=np.float64)
        sound = bool((ascending >= 0).all()) and bool((np.diff(ascending) >= 0).all())
        require(sound, f"{name}.ascending is not ascending from 0")
        return Scores(ascending, self.floor)


@dataclass(frozen=True)
class KeptCalibration:
    """`Calibration` in the file."""

    slope: Annotated[FiniteFloat, Field(gt=0)]
    offset: FiniteFloat


@dataclass(frozen=True)
class KeptDomain:
    """The numbers of `Applicability` in the file."""

    threshold: Annotated[float, Field(ge=0, le=1)]
    bits: int
    radius: int
    molecules_sha256: str


@with_config(KEPT)
@dataclass(frozen=True)
class KeptUncertainty:
    """uncertainty.json."""

    members: int
    outputs: tuple[str, ...]
    scores: Annotated[tuple[KeptScores | None, ...], FailFast()] = ()
    calibrations: Annotated[tuple[KeptCalibration | None, ...], FailFast()] = ()
    notes: tuple[str, ...] = ()
    applicability: KeptDomain | None = None


def read_uncertainty(folder: Path) -> Uncertainty | None:
    """What is kept in a folder; None where nothing is."""
    path = folder / FILE
    if not path.exists():
        return None
    remedy = f"restore it, or remove it to predict without ({FILE} in {folder})."
    try:
        return _restored(folder, read(group_of(read_text(path, remedy)), KeptUncertainty))
    except InputError as error:
        raise InputError(f"{path} cannot be used ({str(error).rstrip('.')}): {remedy}") from error


def _restored(folder: Path, kept: KeptUncertainty) -> Uncertainty:
    outputs, scores, calibrations = kept.outputs, kept.scores, kept.calibrations
    require(len(scores) in (0, len(outputs)), f"it has scores of {len(scores)} outputs, not of {len(outputs)}")
    require(
        len(calibrations) in (0, 1, len(outputs)),
        f"it has calibrations of {len(calibrations)} outputs, not of {len(outputs)}",
    )
    return Uncertainty(
        members=kept.members,
        outputs=outputs,
        scores=tuple(None if each is None else each.scores(f"scores[{place}]") for place, each in enumerate(scores)),
        calibrations=tuple(None if each is None else Calibration(**vars(each)) for each in calibrations),
        notes=kept.notes,
        applicability=None if kept.applicability is None else _applicability(folder, kept.applicability),
    )


def _applicability(folder: Path, kept: KeptDomain) -> Applicability:
    kind = kept.bits, kept.radius
    require(kind == (BITS, RADIUS), f"its fingerprints have bits and radius {kind}, not {(BITS, RADIUS)}")
    path = folder / MOLECULES
    try:
        require(path.is_file() and path.stat().st_size <= MOST_BYTES, f"{MOLECULES} is missing or too large")
        data = path.read_bytes()
        require(digest(data) == kept.molecules_sha256, f"{MOLECULES} has another digest")
        arrays = safetensors.numpy.load(data)
        fingerprints, text = arrays["fingerprints"], arrays["smiles"]
    except (OSError, SafetensorError, KeyError) as error:
        raise InputError(f"{MOLECULES} is damaged: {error}") from error
    smiles = tuple(bytes(text).decode("utf-8", "replace").split("\n"))
    sound = fingerprints.dtype == np.uint8 and fingerprints.shape == (len(smiles), WIDTH)
    require(sound, f"{MOLECULES} has fingerprints of {list(fingerprints.shape)} for {len(smiles)} molecules")
    return Applicability(fingerprints, smiles, kept.threshold)
