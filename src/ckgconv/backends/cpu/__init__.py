"""What makes a model fast on a CPU: fewer passes over memory, memory that is kept, equal rows evaluated once."""

from torch import nn

from ckgconv.backends.cpu.kernel import CPUKernel
from ckgconv.nn.kernel import Kernel

PASSES: dict[type[nn.Module], type[nn.Module]] = {Kernel: CPUKernel}
