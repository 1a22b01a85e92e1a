"""Recipes for the classes of a few hundred small graphs, compared by folds."""

from dataclasses import replace
from typing import Any

from ckgconv.checks import check_tensor, require
from ckgconv.recipe import AttributeRecipe, DataRecipe, HeadRecipe, Recipe, TrainingRecipe
from ckgconv.recipes.paper import zinc
from ckgconv.recipes.variant import changed


def mutag() -> Recipe:
    """MUTAG, 188 molecules that are mutagenic or not, for `--folds 10`.

    One of the two best of six settings by the mean validation accuracy over ten folds. On 18 validation graphs up to
    49 of 60 epochs have the same best accuracy; the one of least validation loss is kept.
    """
    recipe = changed(
        zinc(),
        {"blocks": 1, "dropout": 0.2},
        width=16,
        blocks=3,
        node=AttributeRecipe("linear", (7,)),
        edge=AttributeRecipe("linear", (4,)),
        head=HeadRecipe("pyramid", "mean", layers=2, outputs=2),
        dropout=0.2,
        steps=8,
    )
    training = TrainingRecipe("cross_entropy", "accuracy", epochs=60, warmup_epochs=5, batch_size=32)
    training = replace(
        training, learning_rate=3e-3, min_learning_rate=3e-4, weight_decay=1e-4, select="metric_then_loss"
    )
    return replace(recipe, name="mutag", data=DataRecipe("mutag"), training=training, paper_test=())


def for_graphs(base: Recipe, data: Any) -> Recipe:
    """A recipe for the classes of graphs of one's own.

    Args:
        base: a recipe of this file, or another whose node attributes are "linear".
        data: a packed data set with floating features x [N, F], classes y [G], and floating edge attributes or none.
    """
    for name, remedy in (("x", "give node features [N, F]."), ("y", "give a class per graph.")):
        check_tensor(name, getattr(data, name, None), remedy)
    x, y, edges = data.x, data.y, data.edge_attr
    for name, values in (("x", x), *((("edge_attr", edges),) if edges is not None else ())):
        require(
            values.dim() == 2 and values.is_floating_point(),
            f"{name} has shape {list(values.shape)} and dtype {values.dtype}: give floating columns, types one-hot.",
        )
    require(
        y.dim() == 1 and not y.is_floating_point(),
        f"y has shape {list(y.shape)} and dtype {y.dtype}: give one whole number per graph, its class.",
    )
    edge = AttributeRecipe("constant") if edges is None else AttributeRecipe("linear", (edges.shape[1],))
    model = replace(
        base.model,
        node=replace(base.model.node, sizes=(x.shape[1],)),
        edge=edge,
        head=replace(base.model.head, outputs=max(int(y.max()) + 1, 2)),
    )
    return replace(base, model=model, paper_test=())
