"""The pyramid head in one launch: `nn.head` with its own forward and the same parameters."""

from torch import Tensor

from ckgconv.backends.cuda.head import launch
from ckgconv.nn.head import PyramidHead
from ckgconv.ops import dispatch


class FusedPyramidHead(PyramidHead):
    """`PyramidHead` in one launch for the few rows of a batch, where that applies."""

    def forward(self, x: Tensor) -> Tensor:
        if dispatch.uses_triton(x):
            fields = [field for linear in self.linears for field in (linear.weight, linear.bias)]
            if launch.applies(x, fields):
                return launch.pyramid(x, fields)
        return super().forward(x)
