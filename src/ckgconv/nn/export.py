"""Export of a model or a layer for evaluation, with free numbers of nodes, edges, pairs and graphs.

The exported program reads what `GraphModel.prepare` or `CKGConv.encode` returns: data-dependent steps that find
coordinates and support stay outside, and the network itself is one static graph of tensor operations.
"""

from dataclasses import fields, is_dataclass
from inspect import signature
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch_geometric.data import Data

from ckgconv.graphs import GraphBatch
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.layer import CKGConv
from ckgconv.pairs import EncodedGraphs


def export_model(model: GraphModel, example: Data) -> ExportedProgram:
    """`torch.export` of the model in evaluation mode; `example` shows the attributes, its sizes stay free.

    Example:
        program = export_model(model, data)
        program.module()(model.prepare(other_data))
    """
    return _exported(model, (model.prepare(example),), {})


def export_layer(
    layer: CKGConv, x: Tensor, edge_index: Tensor, pairs: EncodedGraphs, edge_attr: Tensor | None = None
) -> ExportedProgram:
    """`torch.export` of the layer in evaluation mode; the arguments show what it will be given, their sizes stay free.

    Example:
        program = export_layer(layer, x, edge_index, layer.encode(edge_index, num_nodes=5))
        program.module()(other_x, other_index, pairs=layer.encode(other_index, num_nodes=7))
    """
    attributes = {} if edge_attr is None else {"edge_attr": edge_attr}
    return _exported(layer, (x, edge_index), {**attributes, "pairs": pairs})


def _exported(module: nn.Module, positional: tuple[Any, ...], named: dict[str, Any]) -> ExportedProgram:
    training = module.training
    names = list(signature(module.forward).parameters)[: len(positional)]
    shapes = {name: free_sizes(value) for name, value in [*zip(names, positional, strict=True), *named.items()]}
    if "edge_index" in shapes:
        shapes["edge_index"] = {1: Dim.AUTO}
    # Sizes of 0 and 1 are not specialised, so that a single graph, or one without edges, runs too.
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        program = torch.export.export(module.eval(), positional, named, dynamic_shapes=shapes)
    module.train(training)
    return program


def free_sizes(batch: GraphBatch | EncodedGraphs | Tensor) -> Any:
    """The first dimension of every tensor is free, all others are fixed by the model."""

    def describe(value: Any) -> Any:
        if isinstance(value, Tensor):
            return {0: Dim.AUTO}
        if not is_dataclass(value):
            return None
        parts = (getattr(value, field.name) for field in fields(value))
        return [describe(part) for part in parts if part is not None]

    return describe(batch)
