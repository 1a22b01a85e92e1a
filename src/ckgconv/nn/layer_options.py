"""What a single layer can be built with, checked before anything is built."""

from typing import Literal, TypedDict, get_args

from ckgconv.checks import check_choice, check_whole, require
from ckgconv.graphs import SOURCE_TO_TARGET, Flow
from ckgconv.nn.channels import Channels, Depthwise, Grouped, MultiHead
from ckgconv.nn.constraint import Constraint
from ckgconv.nn.norm import NormName
from ckgconv.registry import nearest

DegreeScalerName = Literal["output", "coordinates", "none"]
# The value of in_channels that leaves it to the first call.
LAZY = -1


class ConvOptions(TypedDict, total=False):
    """Options of a layer other than its channels, coordinates and support."""

    kernel_blocks: int
    kernel_width: int | None
    kernel_norm: NormName
    kernel_dropout: float
    mlp_dropout: float
    constraint: Constraint
    degree_scaler: DegreeScalerName
    groups: int | None
    heads: int | None
    flow: Flow
    cached: bool


DEFAULTS = ConvOptions(
    kernel_blocks=2,
    kernel_width=None,
    kernel_norm="batch",
    kernel_dropout=0.0,
    mlp_dropout=0.0,
    constraint="none",
    degree_scaler="output",
    groups=None,
    heads=None,
    flow=SOURCE_TO_TARGET,
    cached=False,
)
MLP_OPTIONS = ("kernel_blocks", "kernel_width", "kernel_norm", "kernel_dropout", "mlp_dropout", "constraint")


def chosen_options(options: ConvOptions, kernel_given: bool) -> ConvOptions:
    """All options, after a check of their names and values."""
    for name in options:
        require(name in DEFAULTS, f"CKGConv has no option {name!r}: {nearest(name, list(DEFAULTS))}")
    chosen = ConvOptions(**{**DEFAULTS, **options})
    check_choice("degree_scaler", chosen["degree_scaler"], get_args(DegreeScalerName))
    for name in ("kernel_width", "groups", "heads"):
        if chosen[name] is not None:  # type: ignore[literal-required]
            check_whole(name, chosen[name], 1)  # type: ignore[literal-required]
    check_whole("kernel_blocks", chosen["kernel_blocks"], 0)
    require(
        not kernel_given or all(chosen[name] == DEFAULTS[name] for name in MLP_OPTIONS),  # type: ignore[literal-required]
        "A kernel was given together with options of the MLP kernel, which would not be read: give one.",
    )
    return chosen


def one_width(in_channels: int | tuple[int, int]) -> int:
    """The width of x, or the common one of sources and targets; -1: that of the first call."""
    if isinstance(in_channels, tuple):
        require(
            len(set(in_channels)) == 1,
            f"in_channels is {in_channels}, but the kernel multiplies sources and targets channel by channel: project "
            f"them to one width first, for example with torch.nn.Linear.",
        )
        in_channels = in_channels[0]
    if in_channels != LAZY:
        check_whole("in_channels", in_channels, 1)
    return in_channels


def channel_rule(in_channels: int, out_channels: int, groups: int | None, heads: int | None) -> Channels:
    """Depthwise unless groups or heads are given."""
    require(groups is None or heads is None, "Both groups and heads were given: choose one of them.")
    if groups is not None:
        return Grouped(in_channels, out_channels, groups)
    return Depthwise(in_channels) if heads is None else MultiHead(in_channels, heads)
