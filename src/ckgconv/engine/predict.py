"""Predictions for new molecules: one row per SMILES, in order; an invalid one has a reason instead of a prediction."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ckgconv.checks import InputError
from ckgconv.data.molecules import ATOM_SIZES, Featuriser, Molecule
from ckgconv.data.tables import pack_molecules, read_molecules
from ckgconv.engine.epoch import predict_batch
from ckgconv.engine.run import Run
from ckgconv.ops.precision import exact_products
from ckgconv.tasks.losses import LOSSES

ZINC_TYPES = (21,)
# Of a batch; that of a few large molecules would not fit into memory otherwise.
MOST_PAIRS = 2**20


@dataclass(frozen=True)
class Predictions:
    """One entry per row of the input; None where nothing could be predicted. T outputs, D width of the embedding."""

    values: list[list[float] | None]  # [T] each
    embeddings: list[list[float] | None]  # [D] each
    reasons: list[str]  # why nothing was predicted; empty for valid molecules


def predict_smiles(run: Run, smiles: Sequence[str], tick: Callable[[int], None] = lambda count: None) -> Predictions:
    """Predict molecules with a trained network: values in the units of the data, or probabilities of labels or classes.

    `tick` is called with the number of rows done since the last call.
    """
    molecules, reasons = read_molecules(smiles, featuriser_of(run), run.recipe.data.most_atoms)
    rows = [row for row, each in enumerate(molecules) if each is not None and _known_types(run, each.x, reasons, row)]
    values: list[list[float] | None] = [None] * len(smiles)
    embeddings: list[list[float] | None] = [None] * len(smiles)
    tick(len(smiles) - len(rows))
    for chosen in batches_of(rows, molecules, run.recipe.training.batch_size):
        packed = pack_molecules([each for row in chosen if (each := molecules[row]) is not None])
        packed = packed.to(run.learner.fabric.device)
        batch = packed.batch(torch.arange(len(chosen), device=run.learner.fabric.device))
        predicted, _ = LOSSES[run.recipe.training.loss].outcome(predict_batch(run.learner, batch))
        for row, value, embedding in zip(chosen, predicted, embed(run, batch), strict=True):
            values[row], embeddings[row] = value.tolist(), embedding.tolist()
        tick(len(chosen))
    return Predictions(values, embeddings, reasons)


def batches_of(rows: Sequence[int], molecules: Sequence[Molecule | None], size: int) -> Iterator[list[int]]:
    """Rows in batches of at most `size` molecules and `MOST_PAIRS` pairs of atoms; a larger molecule is one alone."""
    batch: list[int] = []
    pairs = 0
    for row in rows:
        molecule = molecules[row]
        own = 0 if molecule is None else len(molecule.x) ** 2
        if batch and (len(batch) == size or pairs + own > MOST_PAIRS):
            yield batch
            batch, pairs = [], 0
        batch.append(row)
        pairs += own
    if batch:
        yield batch


def featuriser_of(run: Run) -> Featuriser:
    """The featuriser of the molecules that the network was trained on."""
    node = run.recipe.model.node
    if node.kind == "types" and node.sizes == ZINC_TYPES:
        return "zinc"
    if node.kind == "molecule" and node.sizes == ATOM_SIZES:
        return "molecule"
    raise InputError(
        f"The run was trained on {run.recipe.data.name!r}, whose nodes are not atoms, so it cannot predict molecules: "
        f"give a run that was trained on molecules."
    )


def embed(run: Run, batch: object) -> Tensor:
    """Pooled node states [M, D], what the head reads."""
    with torch.no_grad(), exact_products():
        return run.model.embed(run.model.prepare(batch)).float()


def _known_types(run: Run, x: object, reasons: list[str], row: int) -> bool:
    """ZINC's dictionary has 28 atom types, of which the network embeds the 21 that occur in the data."""
    values = torch.as_tensor(x)
    sizes = torch.tensor(run.recipe.model.node.sizes)
    if bool((values < sizes).all()):
        return True
    reasons[row] = "An atom has a type that does not occur in the training data."
    return False
