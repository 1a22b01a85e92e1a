import torch
from graphs_for_tests import packed, random_edges

from ckgconv.nn.constraint import constrained
from ckgconv.pairs import global_support
from ckgconv.pe import rrwp, sparse_rrwp


def test_weights_of_a_softmax_add_up_to_the_size_of_the_support():
    """Of the stored pairs alone, and with those that a zero row stands for."""
    graphs = packed((6, random_edges(6, 7, 1)), (9, random_edges(9, 10, 2)))
    for encode, expected in ((rrwp, None), (sparse_rrwp, 15)):
        pairs = global_support(graphs, encode(graphs, 2))
        psi = torch.randn(pairs.num_pairs, 3, dtype=torch.float64)
        background = None if expected is None else torch.randn(expected, 3, dtype=torch.float64)
        stored, rest = constrained("softmax", psi, background, pairs)
        total = psi.new_zeros(15, 3).index_add(0, pairs.receiver, stored)
        if rest is not None:
            unstored = pairs.support_size - torch.bincount(pairs.receiver, minlength=15)
            assert unstored.any()
            total = total + unstored.unsqueeze(-1) * rest
        torch.testing.assert_close(total, pairs.support_size.double().unsqueeze(-1).expand(-1, 3))


def test_softplus_and_none_treat_both_kinds_of_pairs_alike():
    graphs = packed((6, random_edges(6, 7, 1)))
    pairs, psi, background = global_support(graphs, sparse_rrwp(graphs, 2)), torch.randn(5, 2), torch.randn(6, 2)
    for one, other in zip(constrained("none", psi, background, pairs), (psi, background), strict=True):
        assert one is other
    for one, other in zip(constrained("softplus", psi, background, pairs), (psi, background), strict=True):
        torch.testing.assert_close(one, other.exp().add(1).log())
    assert constrained("softplus", psi, None, pairs)[1] is None
