"""Scalars that cannot be written are told once, and the run goes on."""

import errno

from ckgconv.engine.record import Epoch
from ckgconv.engine.tensorboard import TensorBoard

EPOCH = Epoch(0, 1.0, 2.0, 1e-3, 0.5)


def test_a_folder_that_cannot_be_written(tmp_path):
    warnings = []
    (tmp_path / "tensorboard").write_text("a file")
    board = TensorBoard(tmp_path, 0, warnings.append)
    board.add(EPOCH)
    board.close()
    assert warnings == ["TensorBoard's scalars cannot be written (File exists); metrics.csv has them."]


def test_a_disk_that_fills_up(tmp_path):
    warnings = []

    class Full:
        def __getattr__(self, name):
            def fail(*arguments):
                raise OSError(errno.ENOSPC, "No space left on device")

            return fail

    board = TensorBoard(tmp_path, 0, warnings.append)
    board.writer.close()
    board.writer = Full()
    board.add(EPOCH)
    board.add(EPOCH)
    board.close()
    assert warnings == ["TensorBoard's scalars cannot be written (No space left on device); metrics.csv has them."]
