"""Models by the kind that a recipe names."""

from ckgconv.nn.ckgcn import CKGCN
from ckgconv.registry import Registry

MODELS: Registry[type[CKGCN]] = Registry("model", "ckgconv.models", {"ckgcn": CKGCN})
