import torch
from hypothesis import given
from hypothesis import strategies as st

from ckgconv.pe.sparse import identity, sparse_matrix


def dense(matrix):
    return torch.zeros(matrix.size, matrix.size, dtype=matrix.values.dtype).index_put(
        (matrix.row, matrix.column), matrix.values
    )


@given(st.integers(1, 8), st.integers(0, 30), st.integers(0, 2**31))
def test_product_and_sum_of_repeated_entries(size, entries, seed):
    generator = torch.Generator().manual_seed(seed)
    row, column = torch.randint(size, (2, entries), generator=generator)
    values = torch.randn(entries, generator=generator, dtype=torch.float64)
    matrix = sparse_matrix(row, column, values, size)
    expected = torch.zeros(size, size, dtype=torch.float64).index_put((row, column), values, accumulate=True)
    torch.testing.assert_close(dense(matrix), expected)
    torch.testing.assert_close(dense(matrix @ matrix), expected @ expected)
    unit = identity(size, torch.float64, values.device)
    torch.testing.assert_close(dense(matrix @ unit), expected)
    assert dense(matrix.pattern()).sum() == matrix.row.shape[0]
