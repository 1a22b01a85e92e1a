"""Passes for a CPU: fewer sweeps over memory, buffers that outlive a step, equal rows evaluated once."""

from torch import nn

from ckgconv.backends.cpu.kernel import CPUKernel
from ckgconv.nn.kernel import Kernel

PASSES: dict[type[nn.Module], type[nn.Module]] = {Kernel: CPUKernel}
