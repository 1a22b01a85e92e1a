"""How channels of the kernel combine with channels of the signal (remark in Section 3.2.3).

    depthwise    y_i[c]    = Σ_j ψ_ij[c] x_j[c]
    multi-head   y_i[h, c] = Σ_j ψ_ij[h] (V x_j)[h, c]
    grouped      y_i[g, o] = Σ_j Σ_c ψ_ij[g, o, c] x_j[g, c]
    shared       y_i[c]    = Σ_j ψ_ij x_j[c]

The first three are a depthwise convolution between `widen` (copy channels until they match) and `collect` (sum the
channels of each output), so one operation serves all; it also takes a kernel of one channel for all of the signal.

Legend: N nodes, P pairs, D matched channels.
"""

from torch import Tensor, nn

from ckgconv.checks import require


class Channels(nn.Module):
    """Base: `kernel` channels of ψ, `convolved` channels after `collect`."""

    kernel: int
    convolved: int

    def reset_parameters(self) -> None:
        """Nothing to reset unless a subclass has parameters."""

    def widen(self, x: Tensor) -> Tensor:
        """Signal [N, in] → [N, D]."""
        return x

    def widen_kernel(self, psi: Tensor) -> Tensor:
        """Kernel [P, kernel] → [P, D]."""
        return psi

    def collect(self, y: Tensor) -> Tensor:
        """[N, D] → [N, convolved]."""
        return y


class Depthwise(Channels):
    """One coefficient per channel: the paper's choice, completed by the projection W."""

    def __init__(self, in_channels: int) -> None:
        super().__init__()
        self.kernel = in_channels
        self.convolved = in_channels

    def extra_repr(self) -> str:
        return str(self.kernel)


class Shared(Channels):
    """One coefficient for all channels, however many the signal has."""

    kernel = 1


class MultiHead(Channels):
    """One coefficient per head, on projected values of `convolved` channels, by default as many as the signal has."""

    def __init__(self, in_channels: int, heads: int, convolved: int | None = None) -> None:
        super().__init__()
        self.kernel = heads
        self.convolved = in_channels if convolved is None else convolved
        require(
            heads > 0 and self.convolved % heads == 0,
            f"heads is {heads}, which does not divide in_channels = {in_channels}: choose a divisor.",
        )
        self.value = nn.Linear(in_channels, self.convolved)

    def reset_parameters(self) -> None:
        self.value.reset_parameters()

    def widen(self, x: Tensor) -> Tensor:
        return self.value(x)

    def widen_kernel(self, psi: Tensor) -> Tensor:
        return psi.repeat_interleave(self.convolved // self.kernel, dim=-1)

    def extra_repr(self) -> str:
        return f"heads={self.kernel}"


class Grouped(Channels):
    """Full mixing inside each of `groups` groups; groups=1 is an ordinary convolution."""

    def __init__(self, in_channels: int, out_channels: int, groups: int) -> None:
        super().__init__()
        require(
            groups > 0 and in_channels % groups == 0 and out_channels % groups == 0,
            f"groups is {groups}, which does not divide in_channels = {in_channels} and "
            f"out_channels = {out_channels}: choose a common divisor.",
        )
        self.groups = groups
        self.group_in = in_channels // groups
        self.group_out = out_channels // groups
        self.kernel = groups * self.group_out * self.group_in
        self.convolved = out_channels

    def widen(self, x: Tensor) -> Tensor:
        by_group = x.view(-1, self.groups, 1, self.group_in)
        return by_group.expand(-1, -1, self.group_out, -1).reshape(x.shape[0], self.kernel)

    def collect(self, y: Tensor) -> Tensor:
        return y.view(-1, self.groups, self.group_out, self.group_in).sum(-1).view(y.shape[0], self.convolved)

    def extra_repr(self) -> str:
        return f"groups={self.groups}"
