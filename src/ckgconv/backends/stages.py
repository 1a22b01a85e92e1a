"""The kernels ψ of all layers as a sequence of stages, as the passes of both devices run them (Eqs. 5 and 6).

    stage s:  y = FC_s( act( BN_s(x) ) )        act = GELU, but the identity in the last stage

B residual blocks are 2B stages, every second of which ends a block; one more, the last, computes ψ and has no
activation. `nn.kernel` is the specification; this file lists its parameters in the order of the stages.

Legend: L layers, K channels of a stage's input, D of its output.
"""

from collections.abc import Iterator, Sequence

from torch import Tensor

from ckgconv.nn.kernel import Kernel
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.kernel_mlp import Stage

StageStatistics = Sequence[tuple[Tensor, Tensor]]  # running mean and variance of each stage's norm


def stages_of(kernel: Kernel) -> tuple[list[Stage], StageStatistics]:
    """Parameters and running statistics [L, K] of all layers, stage by stage."""
    modules = kernel.stages()
    stages = [Stage(norm.scale, norm.shift, linear.weight, linear.bias) for norm, linear in modules]
    return stages, [norm.running for norm, _ in modules]


def by_layer(stages: Sequence[Stage]) -> Iterator[list[Stage]]:
    """The stages of one layer after the other."""
    # unbind, not indexing: autograd then assembles the gradient of all slices once.
    fields = [[field.unbind(0) for field in stage] for stage in stages]
    for layer in range(stages[0].scale.shape[0]):
        yield [Stage(*(field[layer] for field in stage)) for stage in fields]


def has_batch_norms(kernel: Kernel) -> bool:
    """Whether a kernel has batch norms: the passes compute no others."""
    return isinstance(kernel.norm, WeightedBatchNorm)


def mlp_dropout(kernel: Kernel) -> float:
    """Of the blocks; 0 for a linear kernel."""
    return kernel.blocks[0].dropout if len(kernel.blocks) else 0.0
