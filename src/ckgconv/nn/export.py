"""Export of an evaluation model, with free numbers of nodes, edges, pairs and graphs.

The exported program reads what `GraphModel.prepare` returns: data-dependent steps that find coordinates and support
stay outside, and the network itself is one static graph of tensor operations.
"""

from dataclasses import fields
from typing import Any

import torch
from torch import Tensor
from torch.export import Dim, ExportedProgram
from torch_geometric.data import Data

from ckgconv.graphs import GraphBatch
from ckgconv.nn.graph_model import GraphModel


def export_model(model: GraphModel, example: Data) -> ExportedProgram:
    """`torch.export` of the model in evaluation mode; `example` shows the attributes, its sizes stay free.

    Example:
        program = export_model(model, data)
        program.module()(model.prepare(other_data))
    """
    batch = model.prepare(example)
    training = model.training
    # Sizes of 0 and 1 are not specialised, so that a single graph, or one without edges, runs too.
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):  # type: ignore[attr-defined]
        program = torch.export.export(model.eval(), (batch,), dynamic_shapes=(free_sizes(batch),))
    model.train(training)
    return program


def free_sizes(batch: GraphBatch) -> Any:
    """The first dimension of every tensor is free, all others are fixed by the model."""

    def describe(value: Any) -> Any:
        if isinstance(value, Tensor):
            return {0: Dim.AUTO}
        parts = (getattr(value, field.name) for field in fields(value))
        return [describe(part) for part in parts if part is not None]

    return describe(batch)
