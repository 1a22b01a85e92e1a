"""Recipes for a table of molecules, chosen by its number of rows and its task; and for a first trial on ZINC-12k."""

from dataclasses import dataclass, replace

from ckgconv.recipe import CKGCNRecipe, DataRecipe, Recipe, TrainingRecipe
from ckgconv.recipes.paper import zinc
from ckgconv.recipes.pretraining import PRETRAINED, fits_pretrained, molecule_network
from ckgconv.recipes.variant import changed

# Molecules that a run trains on, over all its epochs; fewer rows are read more often.
READ = 80_000
FEWEST_EPOCHS, MOST_EPOCHS = 8, 20


@dataclass(frozen=True)
class Size:
    """What follows from the number of rows."""

    epochs: int
    batch_size: int
    patience: int
    dropout: float  # of the head


def size(rows: int) -> Size:
    """Small tables are read often in small batches, with more dropout."""
    epochs = min(MOST_EPOCHS, max(FEWEST_EPOCHS, READ // max(rows, 1)))
    return Size(epochs, 32 if rows < 5000 else 64, max(5, epochs // 3), 0.2 if rows < 2000 else 0.1)


def molecules(data: DataRecipe, classification: bool = False, rows: int = 1000, read: int = 0) -> Recipe:
    """A network for a few hundred to many thousand molecules, which trains on one CPU core in a minute or two.

    It begins with the pretrained network. `rows` is the size of the table, and `read` the number of features that are
    read beside each molecule (`model.graph_features`).
    """
    chosen = size(rows)
    network = molecule_network(len(data.targets))
    return Recipe(
        name="molecules",
        data=data,
        model=replace(network, graph_features=read, head=replace(network.head, dropout=chosen.dropout)),
        training=TrainingRecipe(
            loss="binary" if classification else "huber",
            metric="auroc" if classification else "mae",
            epochs=chosen.epochs,
            warmup_epochs=0,
            batch_size=chosen.batch_size,
            min_learning_rate=1e-5,
            scale_targets=not classification,
            patience=chosen.patience,
            init=PRETRAINED,
        ),
    )


def fitting(recipe: Recipe) -> Recipe:
    """The recipe, but from scratch where its network was changed and is not the pretrained one any more."""
    if recipe.training.init != PRETRAINED or fits_pretrained(recipe.model):
        return recipe
    return replace(recipe, training=replace(recipe.training, init=""))


def in_words(recipe: Recipe) -> str:
    """The choices in one line."""
    training, model = recipe.training, recipe.model
    begins = f"the weights of {training.init!r}" if training.init else "random weights"
    frozen = f", of which {training.freeze} blocks stay" if training.freeze else ""
    depth = f"{model.blocks} blocks of " if isinstance(model, CKGCNRecipe) else ""
    beside = f", {model.graph_features} features beside each molecule" if model.graph_features else ""
    return (
        f"begins with {begins}{frozen}: {depth}width {model.width}{beside}; at most {training.epochs} epochs in "
        f"batches of {training.batch_size}, learning rate {training.learning_rate:g}, loss {training.loss}"
    )


def zinc_demo() -> Recipe:
    """A small CKGCN with three-hop support that learns ZINC-12k on two CPU cores in a few minutes."""
    recipe = changed(zinc(), {"dropout": 0.1}, width=32, blocks=4, steps=8, support=3)
    return replace(
        recipe,
        name="zinc-demo",
        training=replace(recipe.training, epochs=10, warmup_epochs=0, batch_size=64, learning_rate=2e-3),
    )
