"""Functions that the Triton kernels share: GELU, moments of a batch, dropout.

    GELU(n) = n Φ(n)        GELU'(n) = Φ(n) + n φ(n)

For float32 values Φ is the rational formula 7.1.26 of Abramowitz and Stegun, whose error of 7.5·10⁻⁸ is that of a
float32 sum; φ and Φ share one exponential. For 16-bit storage Φ = ½ (1 + tanh(c₀ n + c₁ n³ + c₂ n⁵)), with
coefficients fitted to Φ, the hardware's tanh and float16 arithmetic, two values per instruction: the root mean square
error in GELU of normally distributed n is 2.5·10⁻⁴, a quarter of what rounding to bfloat16 adds. The throughput of
these instructions limits a stage of the pairs pass. n is clamped to ±6, where Φ is 0 or 1.

Moments are passed on as parts (W, μ, M₂ = Σ w (x - μ)²) of disjoint sets of rows and merged without cancellation:
μ = c + Σ W_s (μ_s - c) / W, M₂ = Σ M₂_s + W_s (μ_s - c)² - W (μ - c)², with c the mean of the first part.
"""

# mypy: disable-error-code="no-untyped-def, operator, assignment, arg-type"

import triton
import triton.language as tl
from triton.language.extra.cuda import gdc_launch_dependents, gdc_wait

TINY = tl.constexpr(1e-30)
AT_ONCE = tl.constexpr(64)  # parts that are read in one tile: more would not fit into registers


def tanh_argument(n: str) -> str:
    """PTX for p = c₀ m + c₁ m³ + c₂ m⁵, with m = n clamped to ±6 and s = m²; two float16 values per register."""
    return f"""
        mov.b32 low, 0xC600C600;
        mov.b32 high, 0x46004600;
        mov.b32 c0, 0x3A613A61;
        mov.b32 c1, 0x28BD28BD;
        mov.b32 c2, 0x8DC48DC4;
        max.f16x2 m, {n}, low;
        min.f16x2 m, m, high;
        mul.f16x2 s, m, m;
        fma.rn.f16x2 p, s, c2, c1;
        fma.rn.f16x2 p, p, s, c0;
        mul.f16x2 p, p, m;"""


TWICE_GELU = tl.constexpr(f"""{{
        .reg .b32 m, s, p, low, high, c0, c1, c2;{tanh_argument("$1")}
        tanh.approx.f16x2 p, p;
        fma.rn.f16x2 $0, $1, p, $1;
        }}""")
# With t = tanh p: Φ = c = ½ + ½ t, GELU' = c + (1 - t) n c p' with p' = c₀ + d₁ s + d₂ s² = c₀ + 3 c₁ m² + 5 c₂ m⁴.
GELU_AND_SLOPE = tl.constexpr(f"""{{
        .reg .b32 n, m, s, p, t, c, low, high, c0, c1, c2, d1, d2, half, one, less;{tanh_argument("$2")}
        mov.b32 d1, 0x2F1B2F1B;
        mov.b32 d2, 0x97359735;
        mov.b32 half, 0x38003800;
        mov.b32 one, 0x3C003C00;
        mov.b32 less, 0xBC00BC00;
        tanh.approx.f16x2 t, p;
        fma.rn.f16x2 p, s, d2, d1;
        fma.rn.f16x2 p, p, s, c0;
        fma.rn.f16x2 c, t, half, half;
        mul.f16x2 n, $2, c;
        fma.rn.f16x2 t, t, less, one;
        mul.f16x2 t, t, n;
        fma.rn.f16x2 $1, t, p, c;
        mov.b32 $0, n;
        }}""")


@triton.jit
def wait_for_last(EARLY: tl.constexpr):
    """Wait until everything written by earlier launches is visible, then let the next launch start.

    Not earlier: waiting launches would occupy SMs that concurrent ones could use. Every program of a launch that starts
    early must call this: otherwise the end of that launch would not imply the end of those before it.
    """
    if EARLY:
        gdc_wait()
        gdc_launch_dependents()


@triton.jit
def group_start(group, stride):
    """First entry of a group; `stride` is 0 or a multiple of 8 entries, since rows lie `pitch` apart.

    Tells the compiler that groups are aligned to 16 bytes, which it cannot infer.
    """
    return tl.multiple_of(tl.cast(group, tl.int64) * stride, 8)


@triton.jit
def row_cells(row, real, columns, PITCH: tl.constexpr):
    """[ROWS, COLUMNS] offsets of the entries of some rows that lie PITCH apart, and which of them exist."""
    return row[:, None] * PITCH + columns[None, :], real[:, None] & (columns < PITCH)[None, :]


@triton.jit
def row_tile(start, rows, columns, PITCH: tl.constexpr, ROWS: tl.constexpr):
    """Rows of the tile from `start` on, which of them exist, and their `row_cells`."""
    row = start + tl.arange(0, ROWS)
    real = row < rows
    place, inside = row_cells(row, real, columns, PITCH)
    return row, real, place, inside


@triton.jit
def normal_distribution(n):
    """Φ(n) and φ(n)."""
    z = tl.abs(n) * 0.7071067811865476
    t = 1.0 / (1.0 + 0.3275911 * z)
    density = tl.exp(-z * z)
    polynomial = 1.421413741 + t * (-1.453152027 + t * 1.061405429)
    tail = 0.5 * t * (0.254829592 + t * (-0.284496736 + t * polynomial)) * density
    return tl.where(n >= 0, 1.0 - tail, tail), 0.3989422804014327 * density


@triton.jit
def gelu(n):
    """GELU(n)."""
    cumulative, _ = normal_distribution(n)
    return n * cumulative


@triton.jit
def gelu_and_slope(n):
    """GELU(n) and GELU'(n)."""
    cumulative, density = normal_distribution(n)
    return n * cumulative, cumulative + n * density


@triton.jit
def rounded_norm(slope, beta, mean):
    """Slope and offset of a norm in float16; the offset belongs to the rounded slope, so that the mean is unchanged."""
    rounded = slope.to(tl.float16)
    return rounded, (beta - mean * rounded.to(tl.float32)).to(tl.float16)


@triton.jit
def saturated(values):
    """float32 → float16, clamped to ±65504."""
    return tl.inline_asm_elementwise(
        "cvt.rn.satfinite.f16x2.f32 $0, $2, $1;", "=r,f,f", [values], dtype=tl.float16, is_pure=True, pack=2
    )


@triton.jit
def twice_gelu(n):
    """2 GELU(n) = n (1 + tanh(…)) of float16, |n| < 2¹⁵; the caller's matrix absorbs the ½: one multiplication less."""
    return tl.inline_asm_elementwise(TWICE_GELU, "=r,r", [n], dtype=tl.float16, is_pure=True, pack=2)


@triton.jit
def half_gelu_and_slope(n, layout):
    """GELU(n) and GELU'(n) of float16.

    `layout` is an operand that no instruction reads: n is then computed once, in the threads that hold `layout`, where
    the compiler would otherwise compute it twice, for two distributions over threads.
    """
    return tl.inline_asm_elementwise(
        GELU_AND_SLOPE, "=r,=r,r,f,f", [n, layout], dtype=(tl.float16, tl.float16), is_pure=True, pack=2
    )


@triton.jit
def tile_moments(values, weight):
    """W, μ [D] and M₂ [D] of a tile [R, D] with weights [R]."""
    total = tl.sum(weight, axis=0)
    mean = tl.sum(values * weight[:, None], axis=0) / tl.maximum(total, TINY)
    offset = values - mean[None, :]
    return total, mean, tl.sum(offset * offset * weight[:, None], axis=0)


@triton.jit
def merge_moments(total, mean, squares, more, more_mean, more_squares):
    """Moments of two sets of rows together."""
    both = total + more
    share = more / tl.maximum(both, TINY)
    offset = more_mean - mean
    return both, mean + offset * share, squares + more_squares + offset * offset * total * share


@triton.jit
def no_moments(CHANNELS: tl.constexpr):
    """W, μ and M₂ of no rows."""
    return 0.0, tl.zeros([CHANNELS], tl.float32), tl.zeros([CHANNELS], tl.float32)


@triton.jit
def merge_tile(total, mean, squares, values, weight):
    """Moments of a set of rows and of a tile [R, D] with weights [R] together."""
    more, more_mean, more_squares = tile_moments(values, weight)
    return merge_moments(total, mean, squares, more, more_mean, more_squares)


@triton.jit
def read_parts(parts, plane, count, channels, columns, PARTS: tl.constexpr):
    """W, μ, σ² [D] from the parts [3, …, count, channels] of one group."""
    centre = tl.load(parts + plane + columns, mask=columns < channels, other=0.0)
    weights = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    firsts = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    seconds = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    for start in tl.static_range(0, PARTS, AT_ONCE):
        part = start + tl.arange(0, AT_ONCE)
        inside = (part < count)[:, None] & (columns < channels)[None, :]
        place = parts + part[:, None] * channels + columns[None, :]
        weight = tl.load(place, mask=inside, other=0.0)
        offset = tl.load(place + plane, mask=inside, other=0.0) - centre[None, :]
        weights += weight
        firsts += weight * offset
        seconds += tl.load(place + 2 * plane, mask=inside, other=0.0) + weight * offset * offset
    total = tl.sum(weights, axis=0)
    mean, variance = resolved(centre, total, firsts, seconds)
    return total, mean, variance


@triton.jit
def read_plain_parts(parts, plane, count, rows, channels, columns, PARTS: tl.constexpr, ROWS: tl.constexpr):
    """The same where every row counts once: part s holds every count-th tile of ROWS rows, so W need not be read."""
    centre = tl.load(parts + plane + columns, mask=columns < channels, other=0.0)
    whole = rows // ROWS
    firsts = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    seconds = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    for start in tl.static_range(0, PARTS, AT_ONCE):
        part = start + tl.arange(0, AT_ONCE)
        weight = (whole - part + count - 1) // count * ROWS + tl.where(whole % count == part, rows % ROWS, 0)
        weight = tl.where((part < count) & (part * ROWS < rows), weight.to(tl.float32), 0.0)[:, None]
        inside = (weight > 0) & (columns < channels)[None, :]
        place = parts + part[:, None] * channels + columns[None, :]
        offset = tl.load(place + plane, mask=inside, other=0.0) - centre[None, :]
        firsts += weight * offset
        seconds += tl.load(place + 2 * plane, mask=inside, other=0.0) + weight * offset * offset
    total = tl.zeros_like(centre) + rows.to(tl.float32)
    mean, variance = resolved(centre, total, firsts, seconds)
    return total, mean, variance


@triton.jit
def resolved(centre, total, firsts, seconds):
    """μ and σ² from W, Σ W_s (μ_s - c) and Σ M₂_s + W_s (μ_s - c)²; c is the mean of a part, so no digits are lost."""
    shift = tl.sum(firsts, axis=0) / tl.maximum(total, TINY)
    variance = tl.sum(seconds, axis=0) / tl.maximum(total, TINY) - shift * shift
    return centre + shift, tl.maximum(variance, 0.0)


@triton.jit
def write_parts(parts, plane, channels, columns, total, mean, squares):
    """One part (W, μ, M₂) of `read_parts`."""
    inside = columns < channels
    tl.store(parts + columns, tl.zeros_like(mean) + total, mask=inside)
    tl.store(parts + plane + columns, mean, mask=inside)
    tl.store(parts + 2 * plane + columns, squares, mask=inside)


@triton.jit
def read_moments(moments, plane, channels, columns):
    """W, μ, σ² [D] from resolved moments [3, …, channels] of one group."""
    inside = columns < channels
    total = tl.load(moments + columns, mask=inside, other=0.0)
    mean = tl.load(moments + plane + columns, mask=inside, other=0.0)
    return total, mean, tl.load(moments + 2 * plane + columns, mask=inside, other=1.0)


@triton.jit
def write_moments(moments, plane, channels, columns, total, mean, variance):
    """Resolved moments of one group."""
    inside = columns < channels
    tl.store(moments + columns, total, mask=inside)
    tl.store(moments + plane + columns, mean, mask=inside)
    tl.store(moments + 2 * plane + columns, variance, mask=inside)


@triton.jit
def track(running_mean, running_variance, momentum, channels, columns, total, mean, variance):
    """Running statistics move towards those of a batch, the variance by its unbiased estimate."""
    inside = columns < channels
    old_mean = tl.load(running_mean + columns, mask=inside, other=0.0)
    old_variance = tl.load(running_variance + columns, mask=inside, other=0.0)
    unbiased = variance * total / tl.maximum(total - 1.0, 1.0)
    share = tl.where(total > 0, momentum, 0.0)
    tl.store(running_mean + columns, old_mean + share * (mean - old_mean), mask=inside)
    tl.store(running_variance + columns, old_variance + share * (unbiased - old_variance), mask=inside)


@triton.jit
def read_sums(sums, count, stride, channels, columns, PARTS: tl.constexpr):
    """Σ over parts of rows [channels], `stride` apart."""
    total = tl.zeros([AT_ONCE, columns.shape[0]], tl.float32)
    for start in tl.static_range(0, PARTS, AT_ONCE):
        part = start + tl.arange(0, AT_ONCE)
        inside = (part < count)[:, None] & (columns < channels)[None, :]
        place = part.to(tl.int64)[:, None] * stride + columns[None, :]
        total += tl.load(sums + place, mask=inside, other=0.0)
    return tl.sum(total, axis=0)


@triton.jit
def write_two_sums(sums, channels, columns, first, second):
    """One part of two sums [channels], one behind the other, as `read_sums` reads them."""
    tl.store(sums + columns, first, mask=columns < channels)
    tl.store(sums + channels + columns, second, mask=columns < channels)


@triton.jit
def scrambled(x):
    """A bijection of 32 bits in which every bit of x affects every bit of the result: two multiplications."""
    x = (x ^ (x >> 16)) * 0x7FEB352D
    x = (x ^ (x >> 15)) * 0x846CA68B
    return x ^ (x >> 16)


@triton.jit
def kept(seed, rows, threshold, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """[ROWS, COLUMNS] whether an entry is kept: a hash of its index under two keys derived from the seed.

    The backward pass recomputes it. One call of Philox yields eight entries, but they belong to other threads:
    exchanging them cost 23 instructions and four barriers per entry, the hash costs ten instructions.
    """
    place = rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    return kept_at(seed, place, threshold)


@triton.jit
def kept_at(seed, place, threshold):
    """Whether the entries of the given indices are kept."""
    key = scrambled(seed.to(tl.uint32))
    other = scrambled(key + 0x9E3779B9)
    place = place.to(tl.uint32)
    bits = (place // 2 + key) * 0x7FEB352D
    bits = (bits ^ (bits >> 15)) + other
    bits = (bits ^ (bits >> 16)) * 0x846CA68B
    bits = bits ^ (bits >> 16)
    return tl.where(place % 2 == 0, bits & 0xFFFF, bits >> 16) < threshold.to(tl.uint32)
