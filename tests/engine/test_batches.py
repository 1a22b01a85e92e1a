"""Which graphs meet in which step, also across processes; and the table of a captured epoch."""

import torch

from ckgconv.engine.batches import evaluation_batches, training_batches
from ckgconv.engine.replay import padded_table, widened_capacity


def test_processes_share_the_batches_of_one():
    graphs = torch.arange(11) + 100
    torch.manual_seed(3)
    whole = list(training_batches(graphs, 4, 0, 1))
    shares = []
    for rank in range(2):
        torch.manual_seed(3)
        shares.append(list(training_batches(graphs, 4, rank, 2)))
    for batch, *parts in zip(whole, *shares, strict=True):
        assert sorted(torch.cat(parts).tolist()) == sorted(batch.tolist())
    assert sorted(torch.cat(whole).tolist()) == graphs.tolist()


def test_a_last_batch_of_fewer_graphs_than_processes_joins_the_one_before():
    shares = []
    for rank in range(3):
        torch.manual_seed(3)
        shares.append(list(training_batches(torch.arange(14), 6, rank, 3)))
    assert [[len(batch) for batch in share] for share in shares] == [[2, 3], [2, 3], [2, 2]]
    assert sorted(torch.cat([batch for share in shares for batch in share]).tolist()) == list(range(14))


def test_every_graph_is_evaluated_once():
    seen = [batch for rank in range(3) for batch in evaluation_batches(torch.arange(10), 2, rank, 3)]
    assert sorted(torch.cat(seen).tolist()) == list(range(10))


def test_the_last_row_of_a_table_is_padded():
    assert padded_table(torch.tensor([3, 1, 2]), 2).tolist() == [[3, 1], [2, -1]]


def test_capacities_leave_slack_but_for_the_largest_graph():
    from ckgconv.backends.cuda.assembly import Capacity

    wide = widened_capacity(Capacity(graphs=4, nodes=100, pairs=1000, edges=200, largest=30))
    assert wide == Capacity(graphs=4, nodes=105, pairs=1050, edges=210, largest=30)
