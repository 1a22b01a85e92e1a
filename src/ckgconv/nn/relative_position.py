"""Relative positions of superpixels as pseudo-coordinates of their own, next to the walks.

    P_ij ← [P_ij ‖ pos_j - pos_i ‖ |pos_j - pos_i|]        `model.relative_positions`

They do not shrink as a support grows, so the factor |supp(i)| of the walks is not theirs.

Legend: N nodes, P pairs, C coordinate channels, p channels of a position.
"""

from dataclasses import replace

import torch
from torch import Tensor

from ckgconv.checks import require
from ckgconv.graphs import Pairs
from ckgconv.nn.coordinates import rescaled
from ckgconv.pairs import Encoding


def with_relative_positions(pairs: Pairs, position: Tensor) -> Pairs:
    """Pairs whose coordinates [P, C] are followed by those of the positions [N, p]: [P, C + p + 1]."""
    apart = position[pairs.sender] - position[pairs.receiver]
    added = torch.cat([apart, apart.norm(dim=-1, keepdim=True)], dim=-1).to(pairs.coordinates.dtype)
    return replace(
        pairs,
        coordinates=torch.cat([pairs.coordinates, added], dim=-1),
        rescaled=torch.cat([rescaled(pairs), added], dim=-1),
    )


def relative_channels(position_channels: int, relative: bool) -> int:
    """Channels that are added to the coordinates."""
    return position_channels + 1 if relative else 0


def check_relative_positions(encoding: Encoding, position_channels: int, inject_degree: bool) -> None:
    """Refuse relative positions of nodes without any, or next to coordinates that are not read as numbers."""
    require(
        position_channels > 0,
        "model.relative_positions is true, but model.position_channels is 0: choose graphs whose nodes have positions, "
        "such as 'mnist'.",
    )
    reading = encoding.coordinate.reading
    require(
        reading in ("normalised", "raw"),
        f"model.relative_positions is true, but coordinates {encoding.name!r} are read by a {reading} of learned "
        f"vectors: choose 'rrwp'.",
    )
    require(
        not inject_degree,
        "model.relative_positions is true, but degrees are injected into the coordinates, which is defined for walks "
        "alone: set model.degree_scaler to 'output' or 'none'.",
    )
