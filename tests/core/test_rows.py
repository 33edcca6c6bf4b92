import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.core.backend import to_numpy
from fiedler.core.rows import normalize_row_sums, normalize_rows, random_subset, row_norms, take_rows


@pytest.fixture
def X(rng):
    X = np.abs(rng.normal(size=(6, 4)))
    X[2] = 0
    return X


def dense(X):
    return X.toarray() if sp.issparse(X) else to_numpy(X)


def test_rows_are_scaled_to_unit_length_and_zeros_stay(X, backend):
    for rows in (backend(X), sp.csr_array(X)):
        assert_allclose(dense(row_norms(rows)), np.linalg.norm(X, axis=1))
        assert_allclose(np.linalg.norm(dense(normalize_rows(rows)), axis=1), [1, 1, 0, 1, 1, 1])
        assert_allclose(dense(normalize_rows(rows)) * np.linalg.norm(X, axis=1)[:, None], X)


def test_rows_are_scaled_to_sum_one_and_zeros_stay(X, backend):
    for rows in (backend(X), sp.csr_array(X)):
        assert_allclose(dense(normalize_row_sums(rows)).sum(axis=1), [1, 1, 0, 1, 1, 1])
        assert_allclose(dense(normalize_row_sums(rows)) * X.sum(axis=1)[:, None], X)


def test_rows_are_taken_by_index(X, backend):
    for rows in (backend(X), sp.csr_array(X)):
        assert_array_equal(dense(take_rows(rows, np.array([4, 0]))), X[[4, 0]])


def test_a_random_subset_is_sorted_and_has_at_least_two_rows(rng):
    indices = random_subset(50, 0.3, rng)

    assert len(indices) == 15
    assert (np.diff(indices) > 0).all()
    assert len(random_subset(50, 0.0, rng)) == 2
