"""Recipes: what a run is, as frozen dataclasses without behaviour. Variants are made with `dataclasses.replace`.

Names of encodings, losses, metrics, optimisers and kinds of models are plain strings here; each is looked up in a
registry (`COORDINATES`, `LOSSES`, `METRICS`, `OPTIMIZERS`, `MODELS`), which installed packages can extend.
"""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, with_config

from ckgconv.graphs import Flow
from ckgconv.recipe.limits import (
    Channels,
    Count,
    Depth,
    Factor,
    Name,
    NotNegative,
    Positive,
    Seed,
    Share,
    Steps,
    Whole,
    Width,
)
from ckgconv.recipe.values import SETTINGS

SplitName = Literal[
    "official",
    "random",
    "random_with_repeated_smiles",
    "stratified",
    "scaffold",
    "scaffold_balanced",
    "butina",
    "group",
    "column",
]


@dataclass(frozen=True)
class DataRecipe:
    """Which graphs, and how they are split.

    `name` is a data set of `ckgconv data list`, a packed .npz file, a folder with train.npz, val.npz and test.npz, or a
    table of molecules (`data.tables`).
    """

    name: str
    limit: int | None = None  # use only this many graphs of each split, the first ones; None: all
    smiles: str = "smiles"  # table: column of the molecules
    targets: tuple[str, ...] = ()  # table: columns of the targets
    features: tuple[str, ...] = ()  # table: columns of numbers that the network reads beside each molecule
    descriptors: Literal["none", "rdkit"] = "none"  # table: descriptors that it reads, too (`data.descriptors`)
    most_atoms: Count = 1000  # table: larger molecules are left out, each with the reason
    split: SplitName = "official"  # of a table: one of `data.splits`
    split_seed: Seed = 0  # seed of a random split of a table, and of folds
    split_sizes: tuple[NotNegative, ...] = (0.8, 0.1, 0.1)  # table: shares of train, validation and test
    split_column: str = ""  # table: column of the words train, val and test, where the split is "column"
    group_column: str = ""  # table: column of groups, none of which is divided, where the split is "group"
    weight_column: str = ""  # table: column of the weights of rows in the loss; "": all are 1
    cluster_distance: Annotated[float, Field(ge=0, le=1)] = 0.4  # table: Tanimoto distance of neighbours, butina
    classes: tuple[tuple[str, ...], ...] = ()  # table: names of the classes of each target, none of a number; (): none
    split_number: Whole = 0  # which split, of nodes that were split several times
    folds: int | None = None  # divide all graphs into this many folds, whatever their splits; None: keep the splits
    fold: Whole = 0  # which fold is tested; the next one validates, the others train


@dataclass(frozen=True)
class AttributeRecipe:
    """How raw attributes of nodes or edges become vectors.

    kind "types" and "molecule" (with Xavier initialisation): `sizes` are the vocabulary sizes of the columns;
    "linear": `sizes` is (number of columns,); "constant": `sizes` is empty; "none": attributes are not read.
    """

    kind: Literal["types", "molecule", "linear", "constant", "none"]
    sizes: Annotated[tuple[Count, ...], Field(max_length=10_000)] = ()
    normalise: Literal["none", "rows"] = "none"  # linear: divide each row by the sum of its absolute values
    dropout: Share = 0.0  # linear: on the attributes themselves


@dataclass(frozen=True)
class KernelRecipe:
    """ψ: residual MLP blocks, norm, dropouts, constraint."""

    blocks: Annotated[int, Field(ge=0, le=1000)] = 2
    norm: Literal["batch", "layer", "rms", "none"] = "batch"
    dropout: Share = 0.0  # on ψ itself
    mlp_dropout: Share = 0.0  # at the end of each block
    constraint: Literal["none", "softmax", "softplus"] = "none"


@dataclass(frozen=True)
class HeadRecipe:
    """Pooling and output layers."""

    kind: Literal["pyramid", "normalised", "mlp"]
    pooling: Literal["sum", "mean", "none"]
    layers: Depth
    outputs: Count
    dropout: Share = 0.0  # mlp: before each layer
    activation: Literal["model", "relu", "gelu"] = "model"  # between layers; "model": that of the network
    scale: Positive = 1.0  # of the pooled features, before graph features join them and the head reads them


@with_config(SETTINGS)
@dataclass(frozen=True, kw_only=True)
class ModelRecipe:
    """What every model has: features of one width, an encoding with its support, a head.

    Each kind of model has a subclass of its own, the class attribute `Recipe` of its entry in `MODELS`.
    """

    kind: str  # name in MODELS
    width: Width
    node: AttributeRecipe
    edge: AttributeRecipe
    head: HeadRecipe
    encoding: str = "rrwp"  # name in COORDINATES
    steps: Steps = 21
    node_steps: Steps = 20  # steps of RWSE, the node part of an encoding without return probabilities of its own
    support: Literal["global", "sparse_global"] | Steps = "global"  # a number: of hops
    flow: Flow = "source_to_target"  # which end of an edge receives: its target, or its source
    position_channels: Channels = 0  # superpixels: channels of the position of each node
    graph_features: Channels = 0  # features of each graph that the head reads beside the pooled ones


@dataclass(frozen=True, kw_only=True)
class PairNetworkRecipe(ModelRecipe):
    """What networks that learn from pseudo-coordinates of pairs may have beyond what is published, off by default."""

    drop_path: Share = 0.0  # of the last block; earlier ones are dropped less often
    coordinate_features: Channels = 0  # frequencies of the sines and cosines of each coordinate
    size_features: bool = False  # degree of each node and order of its graph, as two node inputs more


@dataclass(frozen=True, kw_only=True)
class KernelNetworkRecipe(PairNetworkRecipe):
    """What every network of CKGConv blocks has."""

    blocks: Depth
    kernel: KernelRecipe = KernelRecipe()
    dropout: Share = 0.0
    norm: Literal["batch", "layer"] = "batch"
    degree_scaler: Literal["output", "coordinates", "none"] = "output"
    combine: Literal["sum", "concatenate"] = "sum"
    coordinate_scale: Factor = 0.1  # initial γ of the normalised coordinates
    relative_positions: bool = False  # superpixels: pos_j - pos_i and its length, as pair coordinates more


@dataclass(frozen=True, kw_only=True)
class CKGCNRecipe(KernelNetworkRecipe):
    """A CKGCN."""

    kind: str = "ckgcn"


@dataclass(frozen=True, kw_only=True)
class HybridRecipe(KernelNetworkRecipe):
    """A network of convolution and attention; how they are mixed is told in `nn.hybrid`."""

    kind: str = "hybrid"
    mixing: Literal["turns", "parallel", "modulated"]
    heads: Width = 8  # of attention: in turns and in parallel
    head_channels: Width = 8  # of a query, a key and a value of one head
    attention_dropout: Share = 0.0  # on attention weights, or on the queries that modulate a kernel


@dataclass(frozen=True, kw_only=True)
class GRITRecipe(PairNetworkRecipe):
    """A GRIT graph transformer."""

    kind: str = "grit"
    blocks: Depth
    heads: Width = 8
    dropout: Share = 0.0  # on the output of attention, the pair state and the hidden layer of the feed-forward network
    attention_dropout: Share = 0.0
    clamp: Annotated[Factor, Field(gt=0)] = 5.0  # largest attention score


@dataclass(frozen=True, kw_only=True)
class GraphormerRecipe(ModelRecipe):
    """A Graphormer."""

    kind: str = "graphormer"
    blocks: Depth
    heads: Width = 8
    dropout: Share = 0.0  # on the output of attention and of the feed-forward network
    attention_dropout: Share = 0.0


@dataclass(frozen=True, kw_only=True)
class SANRecipe(ModelRecipe):
    """A SAN."""

    kind: str = "san"
    blocks: Depth
    heads: Width = 8
    gamma: Positive = 1e-5  # weight of the attention to nodes that no edge joins, next to that along edges
    dropout: Share = 0.0  # on the output of attention and of the feed-forward network
    encoding_channels: Width = 8  # of h⁰, for what a transformer reads from the spectrum
    encoding_layers: Depth = 2  # of that transformer
    encoding_heads: Width = 4


@dataclass(frozen=True, kw_only=True)
class MessagePassingRecipe(ModelRecipe):
    """A network of message passing; with attention heads, GPS."""

    kind: str = "message_passing"
    layer: Literal["gcn", "gcn_edges", "gine", "gatv2", "gatedgcn", "pna"]
    blocks: Depth
    heads: Width = 4  # of GATv2
    residual: bool = True
    ffn: bool = True  # a feed-forward network after each layer
    norm: Literal["batch", "layer", "none"] = "batch"
    activation: Literal["relu", "gelu"] = "relu"
    dropout: Share = 0.0
    encoding_channels: Channels = 0  # of h⁰, for the node part of the encoding alone; 0: it is added
    attention_heads: Channels = 0  # attention over the support next to the layer, as in GPS
    attention_dropout: Share = 0.0


@dataclass(frozen=True, kw_only=True)
class PropagationRecipe(ModelRecipe):
    """A `Propagation`."""

    kind: str = "propagation"
    order: Depth  # convolutions one after the other; the mean runs over the features before and after each
    dropout: Share = 0.0  # of what the head reads
    node_dropout: Share = 0.0  # on whole nodes, before the first convolution


@dataclass(frozen=True)
class SamplingRecipe:
    """What a step of training reads of the graphs; evaluation and prediction read all of them in any case.

    kind "none": whole graphs, `training.batch_size` of them; "neighbours": seed nodes and, layer by layer, some of the
    nodes in their supports; "parts": a few parts of a partition of the nodes, with the pairs inside.
    """

    kind: Literal["none", "neighbours", "parts"] = "none"
    batch_nodes: Count = 1024  # of a step: seed nodes, or nodes of the parts, about
    fanouts: tuple[Count, ...] = (10,)  # neighbours: senders drawn for each receiver, one number for each layer or all
    parts: Count = 100  # parts: how many the nodes are divided into


@dataclass(frozen=True)
class TrainingRecipe:
    """Optimiser, schedule, loss, metric."""

    loss: str  # name in LOSSES
    metric: str  # name in METRICS
    epochs: Count
    warmup_epochs: Whole
    batch_size: Count
    learning_rate: Positive = 1e-3
    min_learning_rate: NotNegative = 1e-4
    weight_decay: NotNegative = 1e-5
    clip_norm: Positive = 1.0
    scale_targets: bool = False  # train on (y - mean) / s.d. of the training split; metrics stay in the user's units
    patience: Count | None = None  # stop after this many epochs without a better validation metric
    optimizer: str = "adamw"  # name in OPTIMIZERS
    momentum: Share = 0.9  # of SGD
    huber_delta: Positive = 1.0  # error at which the Huber loss turns linear, in the units the network is trained in
    focal_gamma: NotNegative = 2.0  # of the focal losses: how little rows that are predicted well count
    class_balance: bool = False  # weigh classes and labels by the inverse of their frequency in training
    metrics: tuple[str, ...] = ()  # names in METRICS that are reported next to the metric
    mixed: tuple[str, ...] = ()  # loss "mixed": name in LOSSES of the loss of each column
    mixed_outputs: tuple[Count, ...] = ()  # loss "mixed": outputs of each column, its number of classes or 1
    sampling: SamplingRecipe = SamplingRecipe()  # mini-batches of one large graph
    ema_decay: Share = 0.0  # of the averaged weights that are evaluated; 0: none
    norm_statistics: Literal["running", "median"] = "running"  # what batch norms evaluate with
    smooth_validation: Count = 1  # the best epoch is that of the best mean of this many validations, its own the last
    draws: Annotated[int, Field(ge=1, le=64)] = 1  # predictions of a step, each with its own dropout; losses averaged
    consistency: NotNegative = 0.0  # λ of the distance of the draws to their sharpened mean (`tasks.consistency`)
    sharpening: Positive = 0.5  # τ of that mean
    select: Literal["metric", "loss", "metric_then_loss"] = "metric"  # what of validation the best epoch is chosen by
    schedule: Literal["cosine", "linear", "constant", "constant_linear"] = "cosine"  # after the warm-up
    cooldown: Share = 0.2  # constant_linear: share of the epochs that decay
    init: str = ""  # the folder of a run, or the name of a trained network, whose weights to begin with; "": none
    freeze: Whole = 0  # leave encoders, stems, kernels and this many blocks as they begin; 0: train everything


@with_config(SETTINGS)
@dataclass(frozen=True)
class Recipe:
    """A named run: data set, model, training."""

    name: Name
    data: DataRecipe
    model: ModelRecipe
    training: TrainingRecipe
    paper_test: tuple[float, ...] = ()  # published test metric of this model on this data: mean, and s.d. where printed
    given: tuple[str, ...] = ()  # parts given in Python in place of those named here: "model", "loss", …
