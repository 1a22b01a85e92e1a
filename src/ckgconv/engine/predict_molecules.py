"""Predictions for new molecules: one row per SMILES, in order; an invalid one has a reason instead of a prediction.

Legend: M molecules, T outputs, D width of what the head reads.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ckgconv.checks import InputError, check_instance
from ckgconv.data.molecules import ATOM_SIZES, Featuriser, Molecule
from ckgconv.data.packed_molecules import pack_molecules, read_molecules, with_values
from ckgconv.engine.epoch import predict_batch
from ckgconv.engine.run import Run
from ckgconv.ops.precision import exact_products

ZINC_TYPES = (21,)
ZINC_DICTIONARY = (28,)  # of which 21 types occur
# Of a batch; that of a few large molecules would not fit into memory otherwise.
MOST_PAIRS = 2**20
Tick = Callable[[int], None]


def no_tick(count: int) -> None:
    """Tell nobody how far it is."""


@dataclass(frozen=True)
class Predictions:
    """One entry per row of the input; None where nothing could be predicted."""

    values: list[list[float] | None]  # [T] each
    embeddings: list[list[float] | None]  # [D] each
    reasons: list[str]  # why nothing was predicted; empty for valid molecules


@dataclass(frozen=True)
class Outcomes:
    """What a network says of molecules; NaN where there is no molecule."""

    values: NDArray[np.float64]  # [M, T] in the units of the data, or probabilities of labels or classes
    embeddings: NDArray[np.float64] | None  # [M, D] what the head reads, where asked for


def predict_smiles(
    run: Run,
    smiles: str | Sequence[str],
    tick: Tick = no_tick,
    features: Sequence[Sequence[float]] | None = None,
) -> Predictions:
    """Predict molecules with a trained network: values in the units of the data, or probabilities of labels or classes.

    `smiles` is one text or several. `tick` is called with the number of rows done since the last call. `features` has
    a row for each molecule: the values of the columns `data.features` of the run's recipe, NaN where unknown.
    """
    rows = [smiles] if isinstance(smiles, str) else smiles
    molecules, reasons = read_for([run], rows)
    molecules = molecules if features is None else with_values(molecules, features)
    found = predict_molecules(run, molecules, tick, with_embeddings=True)
    assert found.embeddings is not None
    return Predictions(_listed(found.values, reasons), _listed(found.embeddings, reasons), reasons)


def read_for(runs: Sequence[Run], smiles: Sequence[str]) -> tuple[list[Molecule | None], list[str]]:
    """The molecules that all of these runs can predict, None where one cannot; and a reason for each of the latter."""
    featuriser, most_atoms = reading_of(runs)
    molecules, reasons = read_molecules(smiles, featuriser, most_atoms)
    for run in runs:
        molecules = known_molecules(run, molecules, reasons)
    return molecules, reasons


def reading_of(runs: Sequence[Run]) -> tuple[Featuriser, int]:
    """How these runs read molecules: featuriser, and most atoms."""
    for run in runs:
        check_instance("The run", run, Run, "what open_run or train returned")
    featurisers = [featuriser_of(run) for run in runs]
    return featurisers[0], min(run.recipe.data.most_atoms for run in runs)


def predict_molecules(
    run: Run, molecules: Sequence[Molecule | None], tick: Tick = no_tick, with_embeddings: bool = False
) -> Outcomes:
    """Predict molecules that have been read, with what the head reads where asked for."""
    rows = [row for row, each in enumerate(molecules) if each is not None]
    values = np.full((len(molecules), run.model.outputs), np.nan)
    embeddings: NDArray[np.float64] | None = None
    tick(len(molecules) - len(rows))
    device = run.learner.fabric.device
    for chosen in batches_of(rows, molecules, run.recipe.training.batch_size):
        kept = [each for row in chosen if (each := molecules[row]) is not None]
        packed = pack_molecules(kept, recipe=run.recipe.data).to(device)
        batch = packed.batch(torch.arange(len(chosen), device=device))
        predicted, embedded = outcome_of(run, batch, with_embeddings)
        values[chosen] = predicted.double().cpu().numpy()
        if embedded is not None:
            if embeddings is None:
                embeddings = np.full((len(molecules), embedded.shape[1]), np.nan)
            embeddings[chosen] = embedded.double().cpu().numpy()
        tick(len(chosen))
    if with_embeddings and embeddings is None:
        embeddings = np.full((len(molecules), run.model.head_width), np.nan)
    return Outcomes(values, embeddings)


def outcome_of(run: Run, batch: Any, with_embeddings: bool) -> tuple[Tensor, Tensor | None]:
    """[M, T] values or probabilities, and [M, D] what the head reads where asked for."""
    if with_embeddings:
        predicted, embeddings = output_and_embeddings(run, batch)
    else:
        predicted, embeddings = predict_batch(run.learner, batch), None
    return run.learner.task.loss.outcome(predicted)[0], embeddings


def output_and_embeddings(run: Run, batch: Any) -> tuple[Tensor, Tensor]:
    """[M, T] what the head says and [M, D] what it reads, in one evaluation of the network."""
    head, seen = getattr(run.model, "head", None), []
    if head is None:
        return predict_batch(run.learner, batch), embed(run, batch)
    handle = head.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].detach()))
    try:
        predicted = predict_batch(run.learner, batch)
    finally:
        handle.remove()
    return predicted, seen[0].float() if seen else embed(run, batch)


def batches_of(rows: Sequence[int], molecules: Sequence[Molecule | None], size: int) -> Iterator[list[int]]:
    """Rows in batches of at most `size` molecules and `MOST_PAIRS` pairs of atoms; a larger molecule is a batch."""
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
    node, data = run.recipe.model.node, run.recipe.data.name
    if node.kind == "types" and (node.sizes == ZINC_TYPES or (data == "zinc" and node.sizes == ZINC_DICTIONARY)):
        return "zinc"
    if node.kind == "molecule" and node.sizes == ATOM_SIZES:
        return "molecule"
    raise InputError(
        f"{run.folder or 'The run'} was trained on {data!r} with nodes of kind {node.kind!r} and sizes "
        f"{list(node.sizes)}, which are not the atoms that SMILES are read as, so it cannot predict molecules: give a "
        f"run that was trained on molecules."
    )


def embed(run: Run, batch: Any) -> Tensor:
    """Pooled node states [M, D], what the head reads."""
    with torch.no_grad(), exact_products():
        return run.model.embed(run.model.prepare(batch)).float()


def known_molecules(run: Run, molecules: Sequence[Molecule | None], reasons: list[str]) -> list[Molecule | None]:
    """Molecules whose atom types the network embeds; the others are None, and `reasons` says why.

    ZINC's dictionary has 28 atom types, of which the network embeds the 21 that occur in the data.
    """
    sizes = np.array(run.recipe.model.node.sizes)
    found: list[Molecule | None] = []
    for row, molecule in enumerate(molecules):
        known = molecule is not None and bool((molecule.x < sizes).all())
        if molecule is not None and not known:
            reasons[row] = "An atom has a type that does not occur in the training data."
        found.append(molecule if known else None)
    return found


def _listed(values: NDArray[np.float64], reasons: Sequence[str]) -> list[list[float] | None]:
    rows: list[list[float]] = values.tolist()
    return [None if reason else row for row, reason in zip(rows, reasons, strict=True)]
