"""Strategies that damage bytes and choose numbers from where programs break."""

from hypothesis import strategies as st

NUMBERS = [0, 1, -1, 2, 3, 7, 127, 128, 255, 256, 2**15, 2**16, 2**31 - 1, 2**31, 2**32, 2**62, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, 1.0, 1e18, 1e30, 1e38, -1e38, 1e300, float("inf"), float("-inf"), float("nan"), 5e-324]
WHOLE = st.sampled_from(NUMBERS) | st.integers(-3, 12)
FRACTIONS = st.sampled_from(FLOATS) | st.floats(-10, 10)


@st.composite
def damaged(draw: st.DrawFn, content: st.SearchStrategy[bytes], most: int = 4) -> bytes:
    """Content with up to `most` edits: bytes flipped, removed, repeated, moved, overwritten, the end cut off."""
    data = bytearray(draw(content))
    for _ in range(draw(st.integers(0, most))):
        kind = draw(st.integers(0, 6))
        start = draw(st.integers(0, max(0, len(data) - 1)))
        length = draw(st.sampled_from([1, 2, 4, 8, 32, 256]))
        part = bytes(data[start : start + length])
        if kind == 0 and data:
            data[start] ^= draw(st.integers(1, 255))
        elif kind == 1:
            del data[start : start + length]
        elif kind == 2:
            data[start:start] = part * draw(st.integers(1, 5))
        elif kind == 3:
            data[start : start + length] = draw(st.binary(min_size=0, max_size=16))
        elif kind == 4:
            value = draw(WHOLE)
            size = draw(st.sampled_from([2, 4, 8]))
            data[start : start + size] = (value % 2 ** (8 * size)).to_bytes(
                size, draw(st.sampled_from(["little", "big"]))
            )
        elif kind == 5:
            place = draw(st.integers(0, len(data)))
            del data[start : start + length]
            data[place:place] = part
        elif draw(st.integers(0, 3)) == 0:
            del data[start:]
    return bytes(data)
