"""The epochs of a run as scalars for TensorBoard."""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ckgconv.engine.record import Epoch


class TensorBoard:
    """Writes scalars to `folder`/tensorboard, where TensorBoard is installed.

    A resumed run replaces those from `first_epoch` on. Where they cannot be written, `warn` is called once and the run
    goes on: metrics.csv has the same numbers.
    """

    def __init__(self, folder: Path, first_epoch: int, warn: Callable[[str], None]) -> None:
        self.writer: Any = None
        self.warn = warn
        if importlib.util.find_spec("tensorboard") is not None:
            from torch.utils.tensorboard import SummaryWriter

            with self._told():
                self.writer = SummaryWriter(str(folder / "tensorboard"), purge_step=first_epoch)

    def add(self, epoch: Epoch) -> None:
        if self.writer is not None:
            scalars = epoch.to_json()
            number = scalars.pop("epoch")
            with self._told():
                for name, value in scalars.items():
                    self.writer.add_scalar(name, value, number)

    def close(self) -> None:
        if self.writer is not None:
            with self._told():
                self.writer.close()

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.writer = None
            self.warn(f"TensorBoard's scalars cannot be written ({error.strerror or error}); metrics.csv has them.")
