"""What a run is, as frozen dataclasses without behaviour. Variants are made with `dataclasses.replace`."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class DataRecipe:
    """Which graphs, and how they are split.

    `name` is a data set of `ckgconv data list`, a packed .npz file, a folder with train.npz, val.npz and test.npz, or a
    CSV of molecules.
    """

    name: str
    limit: int | None = None  # the first graphs of each split
    smiles: str = "smiles"  # CSV: column of the molecules
    targets: tuple[str, ...] = ()  # CSV: columns of the targets
    split: Literal["official", "random", "scaffold"] = "official"  # CSV: random or scaffold
    split_seed: int = 0  # CSV: seed of the random split


@dataclass(frozen=True)
class AttributeRecipe:
    """How raw attributes of nodes or edges become vectors.

    kind "types" and "molecule" (Xavier start): `sizes` are the vocabularies of the columns; "linear": `sizes` is
    (number of columns,); "constant": `sizes` is empty; "none": attributes are not read.
    """

    kind: Literal["types", "molecule", "linear", "constant", "none"]
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class KernelRecipe:
    """ψ: residual blocks, norm, dropouts, constraint."""

    blocks: int = 2
    norm: Literal["batch", "layer", "none"] = "batch"
    dropout: float = 0.0  # on ψ itself
    mlp_dropout: float = 0.0  # at the end of each block
    constraint: Literal["none", "softmax", "softplus"] = "none"


@dataclass(frozen=True)
class HeadRecipe:
    """Pooling and output layers."""

    kind: Literal["pyramid", "normalised"]
    pooling: Literal["sum", "mean", "none"]
    layers: int
    outputs: int


@dataclass(frozen=True)
class ModelRecipe:
    """A CKGCN."""

    width: int
    blocks: int
    node: AttributeRecipe
    edge: AttributeRecipe
    head: HeadRecipe
    kernel: KernelRecipe = KernelRecipe()
    encoding: Literal["rrwp", "spd", "rd", "pair_rwse"] = "rrwp"
    steps: int = 21
    node_steps: int = 20  # steps of RWSE beside spd, rd and pair_rwse; rrwp brings its own diagonal
    support: Literal["global", "sparse_global"] | int = "global"
    dropout: float = 0.0
    norm: Literal["batch", "layer"] = "batch"
    degree_scaler: Literal["output", "coordinates", "none"] = "output"
    combine: Literal["sum", "concatenate"] = "sum"
    coordinate_scale: float = 0.1  # where γ of the normalised coordinates starts
    position_channels: int = 0  # superpixels: coordinates of each node


@dataclass(frozen=True)
class TrainingRecipe:
    """Optimiser, schedule, loss, metric."""

    loss: Literal["l1", "cross_entropy", "weighted_cross_entropy", "weighted_binary", "binary"]
    metric: Literal["mae", "accuracy", "sbm_accuracy", "average_precision", "auroc"]
    epochs: int
    warmup_epochs: int
    batch_size: int
    learning_rate: float = 1e-3
    min_learning_rate: float = 1e-4
    weight_decay: float = 1e-5
    clip_norm: float = 1.0
    scale_targets: bool = False  # train on (y - mean) / s.d. of the training split; metrics stay in the user's units
    patience: int | None = None  # stop after so many epochs without a better validation metric


@dataclass(frozen=True)
class Recipe:
    """A named run: data set, model, training."""

    name: str
    data: DataRecipe
    model: ModelRecipe
    training: TrainingRecipe
    paper_test: tuple[float, ...] = ()  # test metric of the paper's CKGCN on this data set: mean, s.d. of 4 runs
