"""Recipes for the nodes of one large graph."""

from ckgconv.recipe import AttributeRecipe, CKGCNRecipe, DataRecipe, HeadRecipe, KernelRecipe, Recipe, TrainingRecipe


def large_sbm() -> Recipe:
    """Finds the communities of one block-model graph from a few labelled nodes; takes two CPU cores a minute or two.

    The whole graph is one batch, so an epoch is one step; the running statistics of BatchNorm need over a hundred steps
    before the validation metric follows training.
    """
    return Recipe(
        name="large-sbm",
        data=DataRecipe("large-sbm"),
        model=CKGCNRecipe(
            width=16,
            blocks=2,
            node=AttributeRecipe("linear", (6,)),
            edge=AttributeRecipe("constant"),
            head=HeadRecipe("pyramid", "none", layers=2, outputs=5),
            kernel=KernelRecipe(blocks=1),
            steps=3,
            support=2,
        ),
        training=TrainingRecipe(
            "cross_entropy", "accuracy", epochs=150, warmup_epochs=5, batch_size=1, learning_rate=5e-3
        ),
    )
