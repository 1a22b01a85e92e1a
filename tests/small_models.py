"""Small recipes of every kind of model, for tests that walk `MODELS`.

They read the attributes of ZINC, predict one number per graph, and have no dropout.
"""

from dataclasses import replace

import pytest
import torch
from golden import small_recipe

from ckgconv import recipe
from ckgconv.pe import COORDINATES
from ckgconv.recipe import (
    AttributeRecipe,
    GraphormerRecipe,
    GRITRecipe,
    HeadRecipe,
    HybridRecipe,
    KernelRecipe,
    MessagePassingRecipe,
    ModelRecipe,
    PropagationRecipe,
    SANRecipe,
)

ZINC = recipe("zinc")
NONE = AttributeRecipe("none")
COMMON = {
    "width": 8,
    "node": ZINC.model.node,
    "edge": ZINC.model.edge,
    "head": HeadRecipe("pyramid", "sum", layers=2, outputs=1),
}
MLP = HeadRecipe("mlp", "sum", layers=2, outputs=1, activation="gelu")
GLOBAL = {"encoding": "rrwp", "steps": 4, "support": "global"}
SPECTRUM = {"encoding": "spectrum", "steps": 3, "encoding_channels": 4, "encoding_heads": 2}
LOOPED = {"encoding": "looped_walks", "steps": 1, "support": 1}


def message_passing(layer: str, **values) -> MessagePassingRecipe:
    edge = {"edge": NONE} if layer == "gcn" else {}
    hop = {"encoding": "spd", "steps": 1, "support": 1, "node_steps": 5}
    return MessagePassingRecipe(**{**COMMON, **edge, "layer": layer, "blocks": 2, **hop, **values})


def ckgcn(encoding: str, support: str | int) -> ModelRecipe:
    return small_recipe("zinc", support, encoding)


def signed(small: ModelRecipe) -> bool:
    return COORDINATES[small.encoding].signed


# Kind of model → its small recipes, one for each choice of layer, encoding or support that computes something else.
SMALL: dict[str, dict[str, ModelRecipe]] = {
    "ckgcn": {
        "rrwp": ckgcn("rrwp", "global"),
        "sparse": ckgcn("rrwp", "sparse_global"),
        "hops": ckgcn("rrwp", 2),
        "spd": ckgcn("spd", "global"),
        "rd": ckgcn("rd", "global"),
        "pair_rwse": ckgcn("pair_rwse", "global"),
        "features": replace(ckgcn("rrwp", "global"), coordinate_features=2, size_features=True, head=MLP),
        "features-sparse": replace(ckgcn("rrwp", "sparse_global"), coordinate_features=1, size_features=True),
        "cycles": replace(ckgcn("rrwp", "global"), encoding="rrwp_cycles"),
        "rings": replace(ckgcn("rrwp", "global"), encoding="rrwp_rings"),
        "cycles-rings": replace(ckgcn("rrwp", "global"), encoding="rrwp_cycles_rings"),
        "rms": replace(ckgcn("rrwp", "sparse_global"), kernel=KernelRecipe(norm="rms")),
    },
    "grit": {
        "global": GRITRecipe(**COMMON, **GLOBAL, blocks=2, heads=4),
        "hops": GRITRecipe(**COMMON, **{**GLOBAL, "support": 3}, blocks=2, heads=4),
        "cycles": GRITRecipe(**COMMON, encoding="rrwp_cycles", steps=4, support=3, blocks=2, heads=4),
        "features": GRITRecipe(
            **{**COMMON, "head": MLP}, **GLOBAL, blocks=2, heads=4, coordinate_features=2, size_features=True
        ),
    },
    "hybrid": {
        **{
            mixing: HybridRecipe(**COMMON, **GLOBAL, blocks=2, mixing=mixing, heads=2, head_channels=3)
            for mixing in ("turns", "parallel", "modulated")
        },
        "parallel-hops": HybridRecipe(
            **{**COMMON, **GLOBAL, "support": 2},
            blocks=2,
            mixing="parallel",
            heads=3,
            head_channels=5,
            degree_scaler="none",
        ),
        "features": HybridRecipe(
            **{**COMMON, "head": MLP},
            **GLOBAL,
            blocks=2,
            mixing="turns",
            heads=2,
            head_channels=3,
            coordinate_features=2,
            size_features=True,
            kernel=KernelRecipe(norm="rms"),
        ),
    },
    "message_passing": {
        **{layer: message_passing(layer) for layer in ("gcn", "gcn_edges", "gine", "gatv2", "gatedgcn", "pna")},
        "gine-plain": message_passing("gine", ffn=False, residual=False, norm="layer", node_steps=0),
        "gps": message_passing("gine", **GLOBAL, attention_heads=2, encoding_channels=3),
        "gps-gatedgcn": message_passing("gatedgcn", **GLOBAL, attention_heads=2),
        "laplacian": message_passing("gatedgcn", encoding="laplacian", steps=3),
    },
    "graphormer": {
        "spd": GraphormerRecipe(**COMMON, encoding="spd", steps=4, blocks=2, heads=4),
        "hops": GraphormerRecipe(**COMMON, encoding="rrwp", steps=4, support=2, blocks=2, heads=4),
    },
    "san": {
        "global": SANRecipe(**COMMON, **SPECTRUM, blocks=2, heads=4, gamma=0.1),
        "hops": SANRecipe(**COMMON, **{**SPECTRUM, "support": 2}, blocks=2, heads=2, gamma=0.1, encoding_layers=1),
    },
    "propagation": {
        "rrwp": PropagationRecipe(**{**COMMON, "edge": NONE}, **GLOBAL, order=2),
        "sparse": PropagationRecipe(**{**COMMON, "edge": NONE}, steps=3, support="sparse_global", order=2),
        "looped": PropagationRecipe(**{**COMMON, "edge": NONE}, **LOOPED, order=2),
    },
}
# A head that reads features of graphs, which tests on graphs of their own do not have.
BESIDE = replace(ckgcn("rrwp", 2), graph_features=3, head=MLP)
CASES = [pytest.param(made, id=f"{kind}-{name}") for kind, all_ in SMALL.items() for name, made in all_.items()]
TRAINED = [*CASES, pytest.param(BESIDE, id="ckgcn-beside")]


def awake(model: torch.nn.Module) -> torch.nn.Module:
    """The model with drawn parameters where they begin at zero, which would hide what they multiply."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.where(parameter != 0, 0.3 * torch.randn_like(parameter)))
    return model


def of_recipe(small: ModelRecipe, **training):
    """A run on ZINC's attributes with a small model."""
    values = {"epochs": 2, "warmup_epochs": 0, "batch_size": 3, **training}
    return replace(ZINC, name=small.kind, model=small, training=replace(ZINC.training, **values), paper_test=())
