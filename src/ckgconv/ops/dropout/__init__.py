"""Dropout, y = x ⊙ mask / (1 - p): packed random numbers on a CPU, torch's dropout elsewhere."""

from torch import Tensor

from ckgconv.ops.derivatives import under_transform
from ckgconv.ops.dropout import naive, packed


def dropout(x: Tensor, probability: float, training: bool) -> Tensor:
    """x in evaluation or where nothing is dropped; otherwise entries kept with probability 1 - p, scaled."""
    if not training or probability == 0.0:
        return x
    return (packed if x.device.type == "cpu" and not under_transform() else naive).dropout(x, probability)


__all__ = ["dropout"]
