import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.preprocessing import normalize

from fiedler.core.backend import to_numpy
from fiedler.core.rows import normalize_rows


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


def test_back_ends_agree(rng, foreign):
    X = rng.normal(size=(50, 80))
    assert_allclose(to_numpy(normalize_rows(foreign(X))), normalize(X), rtol=1e-14)
