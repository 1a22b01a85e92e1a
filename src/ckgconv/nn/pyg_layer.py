"""What PyG's tools expect of a layer: `to_hetero`, `summary` and the explainers look for a `MessagePassing`.

The layer convolves over its support and not along edges, so nothing is propagated, and hooks on messages raise. An
explainer's mask multiplies the weights of the edges: random walks follow a masked edge less often.

Legend: E edges.
"""

from typing import Any, NoReturn

from torch import Tensor, nn
from torch_geometric.nn import MessagePassing

from ckgconv.checks import require
from ckgconv.graphs import Flow
from ckgconv.nn.layer_input import PlainInput
from ckgconv.pairs import Encoding


class PyGLayer(MessagePassing):  # type: ignore[misc]
    """A PyG layer that passes no messages along edges."""

    def __init__(self, flow: Flow) -> None:
        super().__init__(aggr=None, flow=flow)

    def _set_jittable_templates(self, raise_on_error: bool = False) -> None:
        """Skip the `propagate` that PyG would generate for this class: nothing calls it."""

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise_without_messages(type(self).__name__)

    propagate = _refuse
    register_propagate_forward_pre_hook = _refuse
    register_propagate_forward_hook = _refuse
    register_message_forward_pre_hook = _refuse
    register_message_forward_hook = _refuse
    register_aggregate_forward_pre_hook = _refuse
    register_aggregate_forward_hook = _refuse
    register_message_and_aggregate_forward_pre_hook = _refuse
    register_message_and_aggregate_forward_hook = _refuse
    register_edge_update_forward_pre_hook = _refuse
    register_edge_update_forward_hook = _refuse

    def masked(self, given: PlainInput, encoding: Encoding) -> PlainInput:
        """The input with an explainer's mask on the weights and attributes of its edges."""
        if not self.explain:
            return given
        if self._edge_mask is None:
            self._refuse()
        require(
            not encoding.coordinate.whole_numbers,
            f"An explainer needs coordinates with a gradient, and {encoding.name!r} counts hops: explain a layer with "
            f"pe='rrwp', 'heat', 'rd' or 'pair_rwse'.",
        )
        mask: Tensor = self._edge_mask.sigmoid() if self._apply_sigmoid else self._edge_mask
        graph, attributes = given.graph, given.edge_attr
        edges = graph.edge_index.shape[1]
        require(
            mask.shape == (edges,),
            f"The explainer's mask has shape {list(mask.shape)}, but there are {edges} edges: explain the graph that "
            f"the model is given.",
        )
        weight = mask if graph.edge_weight is None else graph.edge_weight * mask
        attributes = None if attributes is None else attributes * mask.unsqueeze(-1)
        return PlainInput(given.x, attributes, graph._replace(edge_weight=weight))

    __repr__ = nn.Module.__repr__


def raise_without_messages(name: str) -> NoReturn:
    """Refuse tools that read or replace messages."""
    require(
        False,
        f"{name} has no messages along edges that could be read or replaced: explain it with GNNExplainer or "
        f"CaptumExplainer, whose mask weights the edges.",
    )
    raise AssertionError
