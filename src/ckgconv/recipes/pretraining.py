"""The network that is pretrained on descriptors of molecules, and from which runs on small tables begin.

It is chosen by the time of a step on one CPU core: kernels without hidden layers on the pairs within two hops take 2 ms
per molecule, where kernels with two hidden layers on all pairs take more than 20.
"""

from dataclasses import replace

from ckgconv.recipe import (
    CKGCNRecipe,
    DataRecipe,
    HeadRecipe,
    KernelRecipe,
    ModelRecipe,
    Recipe,
    TrainingRecipe,
)
from ckgconv.recipes.paper import MOLECULE_ATOMS, MOLECULE_BONDS

# Its name in `engine.trained`; long, since a folder of that name in the working directory would be taken for it.
PRETRAINED = "zinc250k-descriptors"
# Of a sum over about twenty atoms: the head reads values of the size of one.
POOLED_SCALE = 0.05


def molecule_network(outputs: int) -> CKGCNRecipe:
    """A CKGCN for molecules; sums over atoms, as most descriptors are."""
    return CKGCNRecipe(
        width=128,
        blocks=4,
        node=MOLECULE_ATOMS,
        edge=MOLECULE_BONDS,
        head=HeadRecipe("mlp", "sum", layers=2, outputs=outputs, scale=POOLED_SCALE),
        kernel=KernelRecipe(blocks=0),
        steps=8,
        support=2,
    )


def fits_pretrained(model: ModelRecipe) -> bool:
    """Whether a model has every weight of the pretrained network but those of the head, in the same shapes."""
    if not isinstance(model, CKGCNRecipe):
        return False
    known = molecule_network(1)
    kernel = replace(model.kernel, dropout=0.0, mlp_dropout=0.0)
    aside = {"head": known.head, "graph_features": 0, "dropout": 0.0, "drop_path": 0.0, "kernel": kernel}
    return replace(model, **aside, support=known.support) == known  # type: ignore[arg-type]


def pretraining(source: str, targets: tuple[str, ...], epochs: int) -> Recipe:
    """The recipe of `ckgconv pretrain`: standardised targets, judged by their mean absolute error."""
    return Recipe(
        name="molecules",
        data=DataRecipe(source, targets=targets),
        model=molecule_network(len(targets)),
        training=TrainingRecipe(
            loss="huber",
            metric="mae",
            epochs=epochs,
            warmup_epochs=0,
            batch_size=64,
            learning_rate=1.5e-3,
            min_learning_rate=1e-5,
        ),
    )
