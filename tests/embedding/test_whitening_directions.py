import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler import Directions
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError


def test_rows_are_centred_and_have_unit_length(backend, rng):
    """y = (x - x̄) / ‖x - x̄‖, with the mean of the training rows."""
    X, new = rng.normal(size=(30, 5)) + 3, rng.normal(size=(4, 5))
    model = Directions().fit(backend(X))
    centred = new - X.mean(axis=0)

    expected = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    assert_allclose(to_numpy(model.transform(backend(new))), expected, rtol=1e-4, atol=1e-5)


def test_scale_and_shift_of_all_rows_do_not_matter(rng):
    X = rng.normal(size=(30, 5))
    assert_allclose(Directions().fit_transform(X), Directions().fit_transform(7 * X + 100), atol=1e-10)


def test_a_row_equal_to_the_mean_stays_zero():
    assert_array_equal(Directions().fit_transform([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])[1], [0, 0])


def test_equal_rows_stay_zero_and_a_failed_fit_changes_nothing():
    assert_array_equal(Directions().fit_transform(np.full((3, 2), 0.1)), np.zeros((3, 2)))
    model = Directions().fit(np.eye(3))
    with pytest.raises(InputError):
        model.fit(sp.csr_array(np.eye(2)))
    assert model.transform(np.eye(3)).shape == (3, 3)


def test_sparse_rows_are_scaled_but_not_centred():
    X = sp.csr_array([[0.0, 2.0], [3.0, 4.0]])
    Y = Directions(center=False).fit_transform(X)

    assert sp.issparse(Y)
    assert_allclose(Y.toarray(), [[0, 1], [0.6, 0.8]])
    with pytest.raises(InputError, match=r"Directions\(center=False\)"):
        Directions().fit(X)
