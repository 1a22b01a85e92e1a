"""What a request may ask for; more is refused with a sentence."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Counts, sizes in bytes, times in seconds."""

    molecules: int = 200  # of a request in JSON
    rows: int = 20_000  # of a CSV
    letters: int = 2_000  # of a SMILES
    atoms: int = 250  # of a molecule; a run may admit fewer
    json_bytes: int = 2**20
    file_bytes: int = 2**24
    seconds: float = 10.0  # of what a worker is asked at once, and of a molecule alone
    request_seconds: float = 60.0  # of a request in JSON
    file_seconds: float = 1_800.0  # of a CSV
    body_seconds: float = 30.0  # until a body has arrived
    requests: int = 16  # at the same time
    workers: int = 2  # processes that compute
