import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import normalize

from fiedler.core.arrays import normalize_row_sums, normalize_rows, random_subset, row_norms, take_rows, to_numpy


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("container", [np.asarray, sp.csr_array])
def test_scaling_rows_twice_is_scaling_them_once(container, dtype, rng):
    X = rng.poisson(0.5, size=(200, 300)) * rng.uniform(size=(200, 1))
    X[3] = 0
    once = normalize_rows(container(X.astype(dtype)))
    twice = normalize_rows(once)
    dense, again = (rows.toarray() if sp.issparse(rows) else rows for rows in (once, twice))
    assert_array_equal(again, dense)
    assert dense.dtype == dtype
    assert_allclose(dense, normalize(X), rtol=1e-6 if dtype == "float32" else 1e-14)


def test_rows_of_counts_are_scaled_to_the_last_bit_as_by_scikit_learn(rng):
    X = rng.poisson(1.0, size=(50, 80)).astype(float)
    assert_array_equal(normalize_rows(X), normalize(X))
    assert_array_equal(normalize_rows(sp.csr_array(X)).toarray(), normalize(X))


def test_back_ends_scale_rows_alike(rng, foreign):
    X = rng.normal(size=(50, 80))
    assert_allclose(to_numpy(normalize_rows(foreign(X))), normalize(X), rtol=1e-14)
