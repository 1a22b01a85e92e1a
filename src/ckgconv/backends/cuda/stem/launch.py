"""A stem by the Triton kernels of the pairs pass and of the node pass: one stage between two norms.

    e = BN( a + W BN(x) )

The specification is `nn.stem`, where a pair's x are rescaled coordinates and a node's x return probabilities.

Legend: R rows, K channels of the encoding, D width, S parts.
"""

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ckgconv.backends.cuda.node_pass.backward_kernels import norm_sums
from ckgconv.backends.cuda.node_pass.norm import apply_norm
from ckgconv.backends.cuda.pairs_pass.backward_stage import backward_stage
from ckgconv.backends.cuda.pairs_pass.forward_stage import forward_stage
from ckgconv.backends.cuda.pairs_pass.options import Rows
from ckgconv.backends.cuda.pairs_pass.row_kernels import row_moments
from ckgconv.backends.cuda.streams import Streams
from ckgconv.nn.norm import WeightedBatchNorm
from ckgconv.ops.derivatives import first_derivatives_only
from ckgconv.ops.dispatch import shared_memory
from ckgconv.ops.launch import launch_options, power_of_two, product_precision, programs, tall_tile, tile_width
from ckgconv.ops.reductions import summed, write_sums

# Parts: more would cost more to sum than they save. Each program of the next launch reads all of them, which costs
# relatively more where it has few rows itself.
PROGRAMS, FEW_PROGRAMS = 128, 64
BUSY = 2  # programs per SM where parts are summed on a side stream
TALL_BYTES = 114_688  # of shared memory, for tiles of 128 rows backward
MANY = 2**16  # above this many rows a program has as many warps as an SM can hold
NORM_ROWS = 64  # of a tile of the last norm
# A stem has no dropout: number, threshold, factor and rows of the dropout.
NO_DROPOUT = (0, 0, 1.0, 0)


class Parameters(NamedTuple):
    """Parameters of a stem."""

    scale: Tensor  # [K] γ of the encoding's norm
    shift: Tensor  # [K] β
    weight: Tensor  # [D, K] W
    scale_out: Tensor  # [D] γ of the last norm
    shift_out: Tensor  # [D] β


class Settings(NamedTuple):
    """What has no gradient."""

    running: Sequence[tuple[Tensor, Tensor]]  # statistics of both norms, which move towards those of the batch
    momentum: float
    epsilon: float
    precision: str
    streams: Streams


def settings_of(x: Tensor, norms: Sequence[WeightedBatchNorm], streams: Streams) -> Settings:
    """The settings of a stem with these two norms over x."""
    precision = "tf32" if torch.is_autocast_enabled(x.device.type) else product_precision()
    running = [norm.running for norm in norms]
    return Settings(running, norms[1].momentum, norms[1].epsilon, precision, streams)


def encoding_parts(x: Tensor, width: int, rows: Rows) -> Tensor:
    """Parts [3, S, K] of the moments of x [R, K], which depends on no parameter, for a stem of that width."""
    x = x.float().contiguous()
    channels, splits = x.shape[1], _splits(x, _tile(x, width)[0])
    parts = x.new_empty(3, splits, channels)
    row_moments[(splits,)](
        x, parts, *rows, splits, K=channels, PITCH=channels, WEIGHTED=rows.weight is not None,
        BLOCK_K=tile_width(channels), **tall_tile(x.shape[0], channels),
    )  # fmt: skip
    return parts


def stem(
    x: Tensor, parts: Tensor, attributes: Tensor, parameters: Parameters, settings: Settings, rows: Rows
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """e [R, D] from x [R, K], a [R, D], and the moments [3, K], [3, D] (W, μ, σ²) of both norms.

    The moments of x are given as parts, by `encoding_parts`. The last result are those of e itself, [3, D], as a part
    (W, μ, M₂): after a norm they need no sum, μ = β and M₂ = W γ²σ²/(σ² + ε).

    No gradient reaches x: coordinates are not learned. Rows of padding are zero in the result.
    """
    return Stem.apply(x, parts, attributes, rows, settings, *parameters)


class Stem(torch.autograd.Function):
    """The arguments of `stem` → e, the moments of both norms, and those of e as a part."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, parts: Tensor, attributes: Tensor, rows: Rows, settings: Settings, *fields: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        x, attributes = x.float().contiguous(), attributes.float().contiguous()
        parameters = Parameters(*fields)
        moments = x.new_empty(3, x.shape[1])
        features, parts_out = _mixed(x, parts, attributes, parameters, moments, rows, settings)
        e, moments_out, e_part = _normalised(features, parts_out, parameters, rows, settings)
        ctx.save_for_backward(x, features, moments, moments_out, *rows, *fields)
        ctx.settings = settings
        ctx.mark_non_differentiable(moments, moments_out, e_part)
        ctx.set_materialize_grads(False)
        return e, moments, moments_out, e_part

    @staticmethod
    @first_derivatives_only("the stem on a GPU")
    def backward(ctx: Any, gradient: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        x, features, moments, moments_out, weight, filled, *fields = ctx.saved_tensors
        back = StemBackward(x, features, (moments, moments_out), Rows(weight, filled), Parameters(*fields))
        return None, None, *back.run(gradient.contiguous(), ctx.settings)


def _mixed(
    x: Tensor,
    parts: Tensor,
    attributes: Tensor,
    parameters: Parameters,
    moments: Tensor,
    rows: Rows,
    settings: Settings,
) -> tuple[Tensor, Tensor]:
    """a + W BN(x) [R, D], and parts [3, S, D] of its moments."""
    (count, channels), width, splits = x.shape, parameters.weight.shape[0], parts.shape[1]
    tile, options = _tile(x, width)
    features, parts_out = x.new_empty(count, width), x.new_empty(3, splits, width)
    forward_stage[(1, splits)](
        x,
        0,
        parts,
        0,
        parts.stride(0),
        moments,
        *settings.running[0],
        settings.momentum,
        parameters.scale,
        parameters.shift,
        parameters.weight,
        parameters.scale,
        attributes,
        0,
        features,
        0,
        parts_out,
        settings.running[1][0],
        *rows,
        rows.filled,
        *NO_DROPOUT,
        settings.epsilon,
        splits,
        splits,
        ACT=False,
        BIAS=False,
        RESIDUAL=True,
        GIVEN=False,
        TRACK=True,
        **_constants(channels, width, tile, rows, settings),
        PARTS=power_of_two(splits),
        # Programs wait for parts of the moments: eight warps hide that. Backward, four are faster for few rows.
        **{**options, "num_warps": max(8, options["num_warps"])},
    )
    return features, parts_out


def _normalised(
    features: Tensor, parts: Tensor, parameters: Parameters, rows: Rows, settings: Settings
) -> tuple[Tensor, Tensor, Tensor]:
    """e = BN(features) [R, D], the moments of the features, and those of e as a part."""
    (count, width), splits = features.shape, parts.shape[1]
    e, moments = torch.empty_like(features), features.new_empty(3, width)
    e_part = torch.empty_like(moments)
    apply_norm[(min(-(-count // NORM_ROWS), programs(features, 4)),)](
        features, parts, moments, *settings.running[1], settings.momentum, parameters.scale_out,
        parameters.shift_out, e, e_part, rows.filled, settings.epsilon, count, D=width, splits=splits, GIVEN=False,
        WEIGHTED=rows.weight is not None, TILE=_tile(features, width)[0], BLOCK_N=NORM_ROWS, BLOCK_D=tile_width(width),
        PARTS=power_of_two(splits),
    )  # fmt: skip
    return e, moments, e_part


class StemBackward:
    """One backward pass of a stem over x [R, K] and the features [R, D] that enter its last norm."""

    def __init__(
        self, x: Tensor, features: Tensor, moments: tuple[Tensor, Tensor], rows: Rows, parameters: Parameters
    ) -> None:
        self.x, self.features, self.rows, self.parameters = x, features, rows, parameters
        self.moments, self.moments_out = moments
        self.width, self.channels = parameters.weight.shape
        self.tile, self.options = _tile(x, self.width)
        self.splits = _splits(x, self.tile)

    def run(self, gradient: Tensor, settings: Settings) -> tuple[Tensor | None, ...]:
        """∂a, None for rows and settings, and the gradients of the parameters."""
        streams, parameters = settings.streams, self.parameters
        sums_out, norm_out = self._norm_sums(gradient, settings), self.x.new_empty(2 * self.width)
        streams.defer(partial(write_sums, sums_out, norm_out), sums_out, norm_out)
        # `norm_sums` is bound by memory and runs alone: 5 µs for the pairs of ZINC, 30 with a concurrent launch.
        after_sums = streams.point()
        carried, parts, sizes = self._stage(gradient, sums_out, settings)
        streams.flush_deferred(since=after_sums)
        with streams.side_stream(parts):
            weight, _, norm = summed(parts).split(sizes)
        shift, scale = norm.view(2, *parameters.scale.shape)
        shift_out, scale_out = norm_out.view(2, *parameters.scale_out.shape)
        return carried, None, None, scale, shift, weight.view_as(parameters.weight), scale_out, shift_out

    def _norm_sums(self, gradient: Tensor, settings: Settings) -> Tensor:
        """Parts [S, 2 D] of Σ g and Σ g ŷ of the last norm."""
        sums = self.x.new_empty(self.splits, 2 * self.width)
        norm_sums[(self.splits,)](
            gradient, self.features, self.moments_out, sums, sums.stride(0), self.rows.filled, settings.epsilon,
            D=self.width, splits=self.splits, BLOCK_N=self.tile, BLOCK_D=tile_width(self.width),
            num_warps=self.options["num_warps"],
        )  # fmt: skip
        return sums

    def _stage(self, gradient: Tensor, sums_out: Tensor, settings: Settings) -> tuple[Tensor, Tensor, list[int]]:
        """∂a [R, D], and parts [S', ·] of the gradients of W, of its absent bias, and of β and γ, with their sizes."""
        x, rows, parameters = self.x, self.rows, self.parameters
        # Gradients of parameters are summed on a side stream, so their parts may be many.
        few = x.shape[0] <= MANY
        many = min(programs(x, BUSY), -(-x.shape[0] // self.tile)) if few else self.splits
        sizes = [parameters.weight.numel(), self.width, 2 * self.channels]
        parts, carried = x.new_empty(many, sum(sizes)), torch.empty_like(self.features)
        linear, bias, sums = parts.split(sizes, dim=1)
        backward_stage[(1, many)](
            gradient, sums_out, sums_out.stride(0), self.splits, self.features, self.moments_out,
            parameters.scale_out, carried, x, 0, self.moments, *parameters[:3], None, sums, linear, bias,
            parts.stride(0), 0, 0, *rows, x.shape[0], rows.filled, *NO_DROPOUT, settings.epsilon, many, ACT=False,
            THROUGH_NORM=True, PLAIN=True, ADD_CARRY=False, WRITE_CARRY=True, CLEAR=True, FIRST=False, JOIN=False,
            **_constants(self.channels, self.width, self.tile, rows, settings), PARTS=power_of_two(self.splits),
            **self.options,
        )  # fmt: skip
        return carried, parts, sizes


def _constants(channels: int, width: int, tile: int, rows: Rows, settings: Settings) -> dict[str, Any]:
    """What the stage is compiled for in either direction."""
    return {
        "K": channels,
        "D": width,
        "K_PITCH": channels,
        "D_PITCH": width,
        "WEIGHTED": rows.weight is not None,
        "DROP": False,
        "SPARES": False,
        "PRECISION": settings.precision,
        "BLOCK_R": tile,
        "BLOCK_K": tile_width(channels),
        "BLOCK_D": tile_width(width),
    }


def _tile(x: Tensor, width: int) -> tuple[int, dict[str, int]]:
    """Rows of a tile, and the options of a launch: programs are few, so many rows need many warps in each."""
    if x.shape[0] <= MANY:
        return 64, launch_options(width)
    tall_fits = width <= 64 and shared_memory(x) >= TALL_BYTES
    return 128 if tall_fits else 64, {**launch_options(width), "num_warps": 16}


def _splits(x: Tensor, tile: int) -> int:
    most = PROGRAMS if x.shape[0] > MANY else FEW_PROGRAMS
    return max(1, min(programs(x, 1), most, -(-x.shape[0] // tile)))
