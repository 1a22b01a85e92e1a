"""Recipes for a CSV of molecules, and for a first trial on ZINC-12k."""

from dataclasses import replace

from ckgconv.recipe import CKGCNRecipe, DataRecipe, HeadRecipe, KernelRecipe, Recipe, TrainingRecipe
from ckgconv.recipes.paper import MOLECULE_ATOMS, MOLECULE_BONDS, zinc
from ckgconv.recipes.variant import changed


def molecules(data: DataRecipe, classification: bool = False) -> Recipe:
    """A network for a few hundred to a few thousand molecules, which trains on two CPU cores in minutes."""
    return Recipe(
        name="molecules",
        data=data,
        model=CKGCNRecipe(
            width=48,
            blocks=4,
            node=MOLECULE_ATOMS,
            edge=MOLECULE_BONDS,
            head=HeadRecipe("pyramid", "mean", layers=3, outputs=len(data.targets)),
            kernel=KernelRecipe(dropout=0.2, mlp_dropout=0.1),
            steps=12,
        ),
        training=TrainingRecipe(
            loss="binary" if classification else "l1",
            metric="auroc" if classification else "mae",
            epochs=50,
            warmup_epochs=3,
            batch_size=32,
            min_learning_rate=1e-5,
            scale_targets=not classification,
        ),
    )


def zinc_demo() -> Recipe:
    """A small CKGCN with three-hop support that learns ZINC-12k on two CPU cores in a few minutes."""
    recipe = changed(zinc(), {"dropout": 0.1}, width=32, blocks=4, steps=8, support=3)
    return replace(
        recipe,
        name="zinc-demo",
        training=replace(recipe.training, epochs=10, warmup_epochs=0, batch_size=64, learning_rate=2e-3),
    )
