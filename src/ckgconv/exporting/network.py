"""A trained network, or several as one, as a function of plain tensors: what is exported.

    x [N, F], node_encoding [N, K], degree [N], node_graph [N], node_ptr [G + 1]      atoms
    receiver, sender [P], coordinates [P, C], support_size [N]                         pairs, sorted by receiver
    edge_row [E], edge_attr [E, Fe]                                                    bonds: their rows among the pairs
    graph_features [G, C]                                       descriptors and own columns, where it reads them

→ [G, T] values in the units of the data, or probabilities of labels or classes; of several networks their mean, and
their standard deviation next to it. The sparse form of the global support is exported as the dense one, which computes
the same.

Legend: G molecules, N atoms, P pairs, E bonds in both directions, C features of a molecule, T outputs.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ckgconv.checks import InputError, require
from ckgconv.engine.run import Run
from ckgconv.graphs import GraphBatch, Pairs
from ckgconv.nn.graph_model import GraphModel
from ckgconv.nn.models import build_model
from ckgconv.tasks.scaling import TargetScale
from ckgconv.tasks.task import Loss


class Inputs(NamedTuple):
    """Arguments of every exported network, in order; the first dimension of each is free."""

    x: Tensor
    node_encoding: Tensor
    degree: Tensor
    node_graph: Tensor
    node_ptr: Tensor
    receiver: Tensor
    sender: Tensor
    coordinates: Tensor
    support_size: Tensor
    edge_row: Tensor
    edge_attr: Tensor


def input_names(run: Run) -> list[str]:
    """The arguments of a run's network, in order."""
    return [*Inputs._fields, *(["graph_features"] if run.recipe.model.graph_features else [])]


def result_names(runs: Sequence[Run]) -> list[str]:
    """What the network of a run returns, or that of several."""
    return ["predictions", "deviations"][: len(runs)]


class ExportedNetwork(nn.Module):
    """Model, scale of the targets, and what users see of a prediction, in one function of tensors."""

    def __init__(self, model: GraphModel, scale: TargetScale, loss: Loss) -> None:
        super().__init__()
        self.model = model
        self.loss = loss
        self.register_buffer("mean", scale.mean)
        self.register_buffer("spread", scale.spread)

    def forward(self, *inputs: Tensor) -> Tensor:
        """[G, T] for the tensors of `Inputs`, and graph_features where the model reads them."""
        atoms, features = Inputs(*inputs[: len(Inputs._fields)]), inputs[len(Inputs._fields) :]
        pairs = Pairs(
            rowptr=torch.cat([atoms.node_ptr[:1], atoms.support_size.long().cumsum(0)]),
            receiver=atoms.receiver,
            sender=atoms.sender,
            coordinates=atoms.coordinates,
            support_size=atoms.support_size,
            node_graph=atoms.node_graph,
            row_weight=None,
        )
        batch = GraphBatch(
            node_features=atoms.x,
            node_encoding=atoms.node_encoding,
            degree=atoms.degree,
            node_ptr=atoms.node_ptr,
            pairs=pairs,
            edge_row=atoms.edge_row,
            edge_features=atoms.edge_attr,
            position=None,
            graph_features=features[0] if features else None,
        )
        scale = TargetScale(self.get_buffer("mean"), self.get_buffer("spread"))
        return self.loss.outcome(scale.restore(self.model(batch)))[0]


class ExportedEnsemble(nn.Module):
    """Networks that read the same inputs, as one."""

    def __init__(self, members: Sequence[ExportedNetwork]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        """Mean and sample standard deviation [G, T] between the members."""
        predictions = torch.stack([member(*inputs) for member in self.members])
        return predictions.mean(0), predictions.std(0)


def as_one(members: Sequence[ExportedNetwork]) -> ExportedNetwork | ExportedEnsemble:
    """A network itself, or several as one."""
    return members[0] if len(members) == 1 else ExportedEnsemble(members)


def exported_network(run: Run) -> ExportedNetwork:
    """The network of a run on the CPU in float32, in evaluation mode; refused where the inputs above do not suffice."""
    recipe = run.recipe.model
    require(
        not run.recipe.given or "model" not in run.recipe.given, f"{run.folder} has a model given in Python: {PLAIN}"
    )
    require(
        recipe.encoding == "rrwp",
        f"{run.folder} has the encoding {recipe.encoding!r}, and export writes 'rrwp' alone: {PLAIN}",
    )
    require(recipe.head.pooling != "none", f"{run.folder} predicts nodes, not molecules: {PLAIN}")
    require(not recipe.position_channels, f"{run.folder} reads positions, which molecules do not have: {PLAIN}")
    dense = replace(recipe, support="global") if recipe.support == "sparse_global" else recipe
    try:
        model = build_model(dense)
        model.load_state_dict(run.model.state_dict())
    except RuntimeError as error:
        raise InputError(f"The weights of {run.folder} do not fit a plain model ({error}): {PLAIN}") from error
    scale = TargetScale(run.learner.scale.mean.float().cpu(), run.learner.scale.spread.float().cpu())
    return ExportedNetwork(model.float().eval(), scale, run.learner.task.loss).eval()


PLAIN = "export its model in Python with ckgconv.nn.export.export_model."


def inputs_of(batch: GraphBatch) -> tuple[Tensor, ...]:
    """The arguments for a prepared batch."""
    pairs = batch.pairs
    assert batch.edge_features is not None
    every = Inputs(
        batch.node_features,
        batch.node_encoding,
        batch.degree,
        pairs.node_graph,
        batch.node_ptr,
        pairs.receiver,
        pairs.sender,
        pairs.coordinates,
        pairs.support_size,
        batch.edge_row,
        batch.edge_features,
    )
    return every if batch.graph_features is None else (*every, batch.graph_features)
