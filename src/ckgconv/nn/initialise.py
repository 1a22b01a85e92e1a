"""Initial values of the published model, where they differ from torch's own, and how modules draw theirs anew."""

from torch import Tensor, nn

# Standard deviation of the initial weights of kernels, feed-forward networks and the node stem.
SMALL = 0.02


def small_normal(weight: Tensor) -> None:
    """N(0, 0.02²)."""
    nn.init.normal_(weight, std=SMALL)


def reset_every(module: nn.Module) -> None:
    """Call `reset_parameters` of the module and of all modules inside it that have one."""
    for part in module.modules():
        reset = getattr(part, "reset_parameters", None)
        if callable(reset):
            reset()


def linear_bias(bias: Tensor, fan_in: int) -> None:
    """U(-1/√fan_in, 1/√fan_in), torch's default for the bias of a linear map."""
    bound = fan_in**-0.5 if fan_in else 0.0
    nn.init.uniform_(bias, -bound, bound)
