"""Every form of adjacency that PyG's layers take gives the same numbers."""

import pytest
import torch
from graphs_for_tests import random_edges
from torch_geometric import EdgeIndex
from torch_geometric.nn import SAGEConv

from ckgconv import CKGConv, InputError
from ckgconv.pairs.adjacency import edge_list

pytestmark = [
    pytest.mark.usefixtures("double"),
    # torch calls its sparse layouts new, and PyG converts some of them with a warning.
    pytest.mark.filterwarnings("ignore:.*[Ss]parse:UserWarning"),
]

EDGES = torch.unique(random_edges(7, 12, 3, directed=True), dim=1).contiguous()
WEIGHTS = torch.rand(EDGES.shape[1], dtype=torch.float64, generator=torch.Generator().manual_seed(2))
X = torch.randn(7, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


class SparseTensor:
    """What torch_sparse's class of this name offers: rows and columns in row order, values or None, sizes."""

    def __init__(self, row, col, value, sizes):
        order = (row * sizes[1] + col).argsort()
        self.parts = row[order], col[order], None if value is None else value[order]
        self.sizes = sizes

    def coo(self):
        return self.parts

    def sparse_sizes(self):
        return self.sizes


def sparse_tensor(weights):
    return SparseTensor(EDGES[1], EDGES[0], weights, (7, 7))


def coo(weights):
    values = torch.ones(EDGES.shape[1]) if weights is None else weights
    return torch.sparse_coo_tensor(EDGES.flip(0), values, (7, 7))


FORMS = {
    "EdgeIndex": lambda weights: EdgeIndex(EDGES, sparse_size=(7, 7)),
    "int32": lambda weights: EDGES.int(),
    "SparseTensor": sparse_tensor,
    "coo": coo,
    "coalesced": lambda weights: coo(weights).coalesce(),
    "csr": lambda weights: coo(weights).to_sparse_csr(),
    "csc": lambda weights: coo(weights).to_sparse_csc(),
}
CARRY_WEIGHTS = ("SparseTensor", "coo", "coalesced", "csr", "csc")


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_form_gives_the_same_numbers(name, weighted):
    weights = WEIGHTS if weighted else None
    conv = CKGConv(4, 6, steps=3).eval()
    expected = conv(X, EDGES, edge_weight=weights)
    adjacency = FORMS[name](weights)
    apart = {"edge_weight": weights} if name not in CARRY_WEIGHTS else {}
    torch.testing.assert_close(conv(X, adjacency, **apart), expected)
    pairs = conv.encode(adjacency, num_nodes=7, **apart)
    torch.testing.assert_close(conv(X, adjacency, **apart, pairs=pairs), expected)
    # The form as PyG's own layer reads it: rows are the nodes that receive.
    if name not in ("SparseTensor", "int32"):
        sage = SAGEConv(4, 6).double()
        torch.testing.assert_close(sage(X, FORMS[name](None)), sage(X, EDGES))


def test_entries_with_several_values_are_attributes():
    attributes = torch.randn(EDGES.shape[1], 3)
    conv = CKGConv(4, 6, steps=3, edge_dim=3).eval()
    expected = conv(X, EDGES, attributes)
    torch.testing.assert_close(conv(X, sparse_tensor(attributes)), expected)
    hybrid = torch.sparse_coo_tensor(EDGES.flip(0), attributes, (7, 7, 3))
    torch.testing.assert_close(conv(X, hybrid), expected)
    with pytest.raises(InputError, match="edge_attr was given twice"):
        conv(X, sparse_tensor(attributes), attributes)


def test_whole_numbers_are_weights_too():
    conv = CKGConv(4, 6, steps=3).eval()
    counts = torch.ones(EDGES.shape[1], dtype=torch.int64)
    torch.testing.assert_close(conv(X, sparse_tensor(counts)), conv(X, EDGES))


@pytest.mark.parametrize(
    ("adjacency", "options", "sentence"),
    [
        (sparse_tensor(None), {"flow": "target_to_source"}, "whose rows receive, .* give the transposed matrix"),
        (SparseTensor(EDGES[1], EDGES[0], None, (7, 8)), {}, r"a matrix \[7, 8\], expected \[7, 7\]"),
        (torch.eye(8).to_sparse(), {}, r"a matrix \[8, 8\], expected \[7, 7\]"),
        (torch.eye(7), {}, r"edge_index has shape \[7, 7\]"),
        ("edges", {}, "edge_index is a str, not a tensor"),
    ],
)
def test_other_forms_are_refused(adjacency, options, sentence):
    with pytest.raises(InputError, match=sentence):
        CKGConv(4, 6, **options)(X, adjacency)
    with pytest.raises(InputError, match="edge_weight was given twice"):
        CKGConv(4, 6)(X, coo(WEIGHTS), edge_weight=WEIGHTS)


def test_blocks_are_refused():
    with pytest.raises(InputError, match=r"convert with adjacency.to_sparse_csr\(\)"):
        edge_list(torch.eye(4).to_sparse_bsr((2, 2)), "source_to_target")
