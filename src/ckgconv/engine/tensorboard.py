"""The epochs of a run as scalars for TensorBoard."""

import importlib.util
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ckgconv.engine.record import Epoch


class TensorBoard:
    """Writes scalars to `folder`/tensorboard, where TensorBoard is installed.

    A resumed run replaces those from `first_epoch` on.
    """

    def __init__(self, folder: Path, first_epoch: int) -> None:
        self.writer: Any = None
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch)

    def add(self, epoch: Epoch) -> None:
        if self.writer is not None:
            scalars = asdict(epoch)
            number = scalars.pop("epoch")
            for name, value in scalars.items():
                self.writer.add_scalar(name, value, number)

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
