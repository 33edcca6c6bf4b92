import numpy as np
import pytest
from numpy.testing import assert_array_equal

from fiedler.core.backend import fix_signs, row_blocks, smallest_k, to_numpy


@pytest.mark.parametrize(("shape", "k"), [((6, 50), 4), ((3, 7), 7), ((5, 101), 1), ((4, 30), 20)])
def test_smallest_k_is_the_head_of_a_sort(shape, k, backend, rng):
    values = rng.permutation(shape[0] * shape[1]).reshape(shape).astype(float)

    smallest, columns = smallest_k(backend(values), k)

    order = np.argsort(values, axis=1)[:, :k]
    assert_array_equal(to_numpy(columns), order)
    assert_array_equal(to_numpy(smallest), np.take_along_axis(values, order, axis=1))


def test_smallest_k_with_ties_finds_the_right_values(backend, rng):
    values = rng.randint(3, size=(20, 60)).astype(float)

    smallest, columns = smallest_k(backend(values), 9)

    assert_array_equal(to_numpy(smallest), np.sort(values, axis=1)[:, :9])
    assert_array_equal(np.take_along_axis(values, to_numpy(columns), axis=1), to_numpy(smallest))
    assert all(len(set(row)) == 9 for row in to_numpy(columns).tolist())


def test_the_largest_entry_is_positive_and_the_first_decides_a_tie(backend):
    vectors = np.array([[0.1, 0.7, -0.5], [-0.9, -0.7 - 1e-12, 0.5], [0.2, 0.1, 0.0]])

    assert_array_equal(np.sign(to_numpy(fix_signs(backend(vectors))))[[1, 0, 0], [0, 1, 2]], [1, 1, 1])


def test_row_blocks_cover_all_rows_once():
    rows = [i for block in row_blocks(1000, 2**20, np.empty(0)) for i in range(block.start, block.stop)]

    assert rows == list(range(1000))
