"""Hooks: where somebody reads or replaces what goes through a module, no shortcut may leave the module out."""

from torch import nn


def has_hooks(module: nn.Module) -> bool:
    """Whether anything is registered on a call of the module or on its gradients."""
    forward = module._forward_hooks or module._forward_pre_hooks
    return bool(forward or module._backward_hooks or module._backward_pre_hooks)
