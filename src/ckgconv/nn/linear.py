"""The linear maps of networks: `torch.nn.Linear` by the operation of this package, y = x Wᵀ + b."""

from torch import Tensor, nn

from ckgconv.ops.linear import linear


class Linear(nn.Linear):
    """[·, K] → [·, D]; parameters, names and starting values are torch's."""

    def forward(self, input: Tensor) -> Tensor:
        return linear(input, self.weight, self.bias)
