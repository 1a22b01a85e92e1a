"""The pyramid heads in one launch: `nn.head` with its own forward and the same parameters."""

from torch import Tensor

from ckgconv.backends.cuda.head import launch
from ckgconv.nn.head import PyramidHead, ReLUPyramidHead
from ckgconv.ops import dispatch


class FusedPyramidHead(PyramidHead):
    """`PyramidHead` in one launch for the few rows of a batch, where that applies."""

    def forward(self, x: Tensor) -> Tensor:
        fields = fields_of(self)
        if dispatch.uses_triton(x) and launch.applies(x, fields):
            return launch.pyramid(x, fields, "gelu")
        return super().forward(x)


class FusedReLUPyramidHead(ReLUPyramidHead):
    """`ReLUPyramidHead` in the same way."""

    def forward(self, x: Tensor) -> Tensor:
        fields = fields_of(self)
        if dispatch.uses_triton(x) and launch.applies(x, fields):
            return launch.pyramid(x, fields, "relu")
        return super().forward(x)


def fields_of(head: PyramidHead) -> list[Tensor]:
    """Weights and biases, layer by layer."""
    return [field for linear in head.linears for field in (linear.weight, linear.bias)]
