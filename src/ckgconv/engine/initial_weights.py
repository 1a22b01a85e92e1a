"""Weights taken from another run, and parts of a network that training leaves as they are.

    training.init     a run's folder or the name of a trained network: every weight is taken but those of the head
    training.freeze   N > 0: encoders, stems, kernels and the first N blocks are not trained

The kernels of all blocks are one tensor, so they are frozen together. Norms of frozen parts go on tracking statistics.
"""

from pathlib import Path

from torch import Tensor, nn

from ckgconv.checks import InputError, require
from ckgconv.engine import checkpoint
from ckgconv.engine.trained import TRAINED, run_folder
from ckgconv.nn.graph_model import GraphModel
from ckgconv.recipe import TrainingRecipe

# Parts that belong to the targets and features of a run, not to its graphs.
NEW = ("head.", "graph_join.")
FROZEN = ("node_encoder", "edge_encoder", "node_stem", "pair_stem", "kernel")
MOST_BYTES = 2**30


def prepare_weights(model: GraphModel, recipe: TrainingRecipe) -> None:
    """Take over the weights that the recipe names, and freeze the parts that it names."""
    if recipe.init:
        take_weights(model, recipe.init)
    if recipe.freeze:
        freeze(model, recipe.freeze)


def take_weights(model: nn.Module, name: str) -> None:
    """Copy the weights of a run into a model; refused where one other than those of the head is missing or differs."""
    folder = run_folder(name)
    known = ", ".join(TRAINED)
    require(
        folder.is_dir(), f"training.init is {name!r}: give the folder of a run, or a trained network by name ({known})."
    )
    found = _best(folder)
    own = {key: value for key, value in model.state_dict().items() if not key.startswith(NEW)}
    for key, value in own.items():
        require(
            key in found,
            f"{folder} has no weights {key!r}: choose a model of the same kind and size (see its recipe.json), or "
            f"train from scratch.",
        )
        require(
            found[key].shape == value.shape,
            f"{key!r} of {folder} has shape {list(found[key].shape)}, that of this model {list(value.shape)}: choose "
            f"the same model.width, model.blocks and model.steps (see its recipe.json), or train from scratch.",
        )
    model.load_state_dict({key: found[key] for key in own}, strict=False)


def _best(folder: Path) -> dict[str, Tensor]:
    try:
        tensors, _ = checkpoint.load(folder / "best", MOST_BYTES)
    except InputError as error:
        raise InputError(f"{error} Give a run that has ended, in training.init.") from error
    return tensors


def freeze(model: nn.Module, count: int) -> None:
    """Leave encoders, stems, kernels and the first `count` blocks as they are."""
    blocks = getattr(model, "blocks", None)
    require(
        isinstance(blocks, nn.ModuleList),
        f"training.freeze is {count}, but {type(model).__name__} has no blocks: set it to 0.",
    )
    assert isinstance(blocks, nn.ModuleList)
    require(
        count <= len(blocks),
        f"training.freeze is {count}, but the network has {len(blocks)} blocks: give no more.",
    )
    parts = [part for name in FROZEN if isinstance(part := getattr(model, name, None), nn.Module)]
    for part in (*parts, *blocks[:count]):
        part.requires_grad_(False)
