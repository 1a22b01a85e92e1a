"""Sinusoidal features of coordinates: smooth values → features that tell near values apart.

    φ(P) = [P ‖ sin(2ˡ π P) ‖ cos(2ˡ π P)],  l = 0 … F - 1        F = `model.coordinate_features`

P are the coordinates themselves, such as probabilities of a walk, without the factor |supp(i)|.

Legend: R rows, C coordinate channels, F frequencies.
"""

import math

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.pairs import Encoding


def sinusoids(values: Tensor, frequencies: int) -> Tensor:
    """Sines, then cosines, of each value at each frequency: [R, C] → [R, 2 F C]."""
    level = torch.arange(frequencies, device=values.device, dtype=values.dtype)
    angles = (values.unsqueeze(-1) * (math.pi * torch.exp2(level))).flatten(1)
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def with_sinusoids(features: Tensor, values: Tensor, frequencies: int) -> Tensor:
    """Features [R, C], then the sinusoids of the values [R, C]; the features alone where F = 0."""
    return torch.cat([features, sinusoids(values, frequencies)], dim=-1) if frequencies else features


def with_frequencies(channels: int, frequencies: int) -> int:
    """Channels of φ."""
    return channels * (1 + 2 * frequencies)


def check_frequencies(encoding: Encoding, frequencies: int) -> None:
    """Refuse sinusoids of coordinates that have a learned vector for each value."""
    reading = encoding.coordinate.reading
    require(
        not frequencies or reading in ("normalised", "raw"),
        f"model.coordinate_features is {frequencies}, but coordinates {encoding.name!r} are read by a {reading} of "
        f"learned vectors: set it to 0, or choose 'rrwp'.",
    )
