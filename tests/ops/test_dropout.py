import pytest
import torch
from on_device import keep_mask, needs_triton
from torch.autograd import gradcheck

from ckgconv.ops.dropout import dropout, naive, packed


@pytest.mark.parametrize("operation", [naive.dropout, packed.dropout])
@pytest.mark.parametrize("probability", [0.05, 0.1, 0.5, 0.9])
def test_share_and_expectation(operation, probability):
    x = torch.full((400, 501), 3.0, dtype=torch.float64)
    y = operation(x, probability)
    assert (y != 0).double().mean().item() == pytest.approx(1 - probability, abs=5e-3)
    assert y.mean().item() == pytest.approx(3, rel=3e-2)
    assert len(y.unique()) == 2
    # Neighbouring decisions share a random number but not its bits.
    kept = (y != 0).double()
    together = (kept[:, :-1] * kept[:, 1:]).mean().item()
    assert together == pytest.approx((1 - probability) ** 2, abs=5e-3)


@pytest.mark.parametrize("operation", [naive.dropout, packed.dropout])
def test_gradient_passes_the_same_mask(operation):
    x = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)

    def run(values):
        torch.manual_seed(3)
        return operation(values, 0.4)

    assert gradcheck(run, (x,))


def test_edges_of_the_range():
    x = torch.randn(3, 3)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
    assert packed.dropout(x, 1e-9) is x
    assert not dropout(x, 1.0, training=True).any()
    assert dropout(torch.zeros(0, 3), 0.5, training=True).shape == (0, 3)


def test_follows_the_seed():
    x = torch.ones(50, 3)
    torch.manual_seed(7)
    first = dropout(x, 0.5, training=True)
    torch.manual_seed(7)
    assert torch.equal(dropout(x, 0.5, training=True), first)


@needs_triton
@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_hashed_masks_look_independent(probability):
    """Share kept, and correlations between neighbours in rows, columns and seeds, within five standard errors."""
    masks = torch.stack([(keep_mask(seed, 256, 64, probability) > 0).double() for seed in range(40, 44)])
    entries = masks.numel()
    share = masks.mean()
    spread = (probability * (1 - probability)) ** 0.5
    assert abs(share - (1 - probability)) < 5 * spread / entries**0.5
    centred = (masks - share) / spread
    neighbours = [
        (centred[:, 1:], centred[:, :-1]),
        (centred[:, :, 1:], centred[:, :, :-1]),
        (centred[1:], centred[:-1]),
        (centred[:, 2:, 2:], centred[:, :-2, :-2]),
    ]
    for one, other in neighbours:
        assert abs((one * other).mean()) < 5 / one.numel() ** 0.5


@pytest.mark.parametrize("kept", [2**15, 2**15 + 1])
def test_every_bit_is_random(kept):
    """Each bit of each part is set half of the time, independently of its neighbours."""
    bits = packed.draw_bits(torch.Size((4000, 64)), kept).long()
    width = 16 if kept % 256 else 8
    planes = torch.stack([bits >> place & 1 for place in range(width)]).double()
    assert (planes.mean((1, 2)) - 0.5).abs().max() < 6e-3
    assert (planes.mean(1) - 0.5).abs().max() < 0.05
    centred = planes.flatten(1) - 0.5
    together = centred @ centred.T / centred.shape[1] / 0.25
    assert (together - torch.eye(width)).abs().max() < 0.012


def test_draws_differ():
    one, other = (packed.draw_bits(torch.Size((4000, 64)), 2**15).double() for _ in range(2))
    assert torch.corrcoef(torch.stack([one.flatten(), other.flatten()]))[0, 1].abs() < 0.01
