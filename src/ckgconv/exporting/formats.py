"""An exported network as files: model.pt2 by `torch.export`, model.onnx by torch's exporter to ONNX.

Numbers of molecules, atoms, pairs and bonds are free in both.
"""

import logging
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.export import Dim, ExportedProgram

from ckgconv.checks import InputError
from ckgconv.data.packed_molecules import pack_molecules, read_molecules, with_values
from ckgconv.engine.predict_molecules import featuriser_of
from ckgconv.engine.run import Run
from ckgconv.exporting.network import as_one, exported_network, inputs_of
from ckgconv.files import write_whole

# Two molecules that show the kinds of inputs; every size of them stays free.
EXAMPLE = ("CCO", "c1ccccc1C")


def exported_program(runs: Sequence[Run]) -> ExportedProgram:
    """The network of a run, or those of several as one, as a program of tensor operations."""
    members, run = [exported_network(run) for run in runs], runs[0]
    molecules, _ = read_molecules(EXAMPLE, featuriser_of(run))
    molecules = with_values(molecules, [[0.0] * len(run.recipe.data.features)] * len(EXAMPLE))
    packed = pack_molecules([each for each in molecules if each is not None], recipe=run.recipe.data)
    example = inputs_of(members[0].model.prepare(packed.batch(torch.arange(len(EXAMPLE)))))
    shapes = {"inputs": tuple({0: Dim.AUTO} for _ in example)}
    # Sizes of 0 and 1 are not specialised, so that one molecule, or one without bonds, runs too.
    oblivious = torch.fx.experimental._config.patch(backed_size_oblivious=True)  # type: ignore[attr-defined]
    with torch.no_grad(), oblivious, _quiet():
        return torch.export.export(as_one(members), example, dynamic_shapes=shapes)


def write_torch(program: ExportedProgram, path: Path) -> None:
    """model.pt2, which `torch.export.load` reads."""

    def write(part: Path) -> None:
        with part.open("wb") as file:
            torch.export.save(program, file)

    with _quiet():
        write_whole(path, write)


def write_onnx(program: ExportedProgram, path: Path, inputs: list[str], outputs: list[str]) -> None:
    """model.onnx, which any runtime of ONNX reads, with these names of its inputs and outputs."""
    try:
        import onnxscript  # noqa: F401
    except ImportError as error:
        raise InputError("Export to ONNX needs onnx and onnxscript: pip install 'ckgconv[export]'.") from error
    try:
        with _quiet():
            made = torch.onnx.export(
                program,
                dynamo=True,
                input_names=inputs,
                output_names=outputs,
                external_data=False,
                verbose=False,
            )
    except torch.onnx.errors.OnnxExporterError as error:
        first = str(error).strip().splitlines()[0]
        raise InputError(
            f"The network has an operation that ONNX lacks ({first}): export it with --format torch."
        ) from error
    assert made is not None
    write_whole(path, lambda part: made.save(str(part)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Without what torch says about itself while it exports."""
    logger = logging.getLogger("torch")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(before)
