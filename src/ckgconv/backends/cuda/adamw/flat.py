"""AdamW on a GPU with all parameters in one vector: an update is a few launches, and can be captured.

Parameters and moments become views of flat vectors, so state dicts and checkpoints are unchanged; learning rate and
step count are on the device. Where the weights are averaged, the same launch updates the average.
"""

import torch
from torch import Tensor, nn

from ckgconv.backends.cuda.adamw import launch
from ckgconv.backends.cuda.adamw.naive import Moments, Rates
from ckgconv.backends.cuda.streams import IN_ORDER, Streams

PIECE = 8192  # entries that one block of a launch copies
COPIED = 64  # tensors that one launch copies, as many as its arguments hold


class FlatAdamW(torch.optim.AdamW):
    """AdamW with clipping of the gradient's norm.

    Args:
        parameters: float32, on one GPU.
        rates: clipping, weight decay and the decay of the average.
        learning_rate: its initial value; a captured step reads it from the device.
    """

    def __init__(self, parameters: list[nn.Parameter], rates: Rates, learning_rate: float) -> None:
        device = parameters[0].device
        rate = torch.tensor(learning_rate, device=device)
        super().__init__(parameters, lr=rate, weight_decay=rates.weight_decay, fused=True, capturable=True)
        self.rates = rates
        self.flat = torch.cat([parameter.detach().flatten() for parameter in parameters])
        self.gradient = torch.zeros_like(self.flat)
        self.moments = Moments(
            torch.zeros_like(self.flat),
            torch.zeros_like(self.flat),
            torch.zeros((), dtype=torch.float32, device=device),
        )
        self.average = self.flat.clone() if rates.ema_decay else None  # [M]
        sizes = [parameter.numel() for parameter in parameters]
        self.pieces = [piece for vector in self.gradient.split(sizes) for piece in vector.split(PIECE)]
        views = zip(*(vector.split(sizes) for vector in (self.flat, *self.moments[:2])), strict=True)
        for parameter, (values, first, second) in zip(parameters, views, strict=True):
            parameter.data = values.view_as(parameter)
            self.state[parameter] = {
                "step": self.moments.step,
                "exp_avg": first.view_as(parameter),
                "exp_avg_sq": second.view_as(parameter),
            }

    def averages(self) -> list[Tensor] | None:
        """The averages of all parameters, in their order and shapes; None where there are none."""
        if self.average is None:
            return None
        parameters = self.param_groups[0]["params"]
        parts = self.average.split([parameter.numel() for parameter in parameters])
        return [part.view_as(parameter) for part, parameter in zip(parts, parameters, strict=True)]

    @torch.no_grad()
    def clipped_step(self, streams: Streams = IN_ORDER) -> None:
        """Clip and update at once; a parameter that no gradient reached counts as zero."""
        parameters = self.param_groups[0]["params"]
        gradients = [p.new_zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in parameters]
        # In pieces, each copied by one block of a few launches; concatenating 150 vectors costs 39 µs.
        pieces = [piece for gradient in gradients for piece in gradient.split(PIECE)]
        for start in range(0, len(pieces), COPIED):
            with streams.side_stream():
                torch._foreach_copy_(self.pieces[start : start + COPIED], pieces[start : start + COPIED])
        streams.join()
        rate = self.param_groups[0]["lr"]
        launch.clipped_adamw(self.flat, self.gradient, self.moments, rate, self.rates, self.average)
