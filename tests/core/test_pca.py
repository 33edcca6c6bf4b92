import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from sklearn.decomposition import PCA

from fiedler.core.arrays import to_numpy
from fiedler.core.pca import fit_pca
from fiedler.errors import InputError


@pytest.fixture
def X(rng):
    return rng.normal(size=(60, 5)) * [5, 3, 2, 1, 0.1] + 7


@pytest.mark.parametrize("n_components", [2, 5, 0.9])
def test_projections_are_those_of_scikit_learn(n_components, X, backend):
    projection = fit_pca(backend(X), n_components, random_state=0)

    Z, expected = to_numpy(projection(backend(X))), PCA(n_components, svd_solver="full").fit_transform(X)
    assert_allclose(np.abs(Z), np.abs(expected), atol=1e-9)


def test_sparse_rows_have_the_projection_of_dense_ones(X):
    dense, sparse = fit_pca(X, 3)(X), fit_pca(sp.csr_array(X), 3, random_state=0)(sp.csr_array(X))

    assert_allclose(np.abs(sparse), np.abs(dense), atol=1e-8)


def test_the_inverse_of_all_components_is_the_data(X, backend):
    projection = fit_pca(backend(X), 5)

    assert_allclose(to_numpy(projection.inverse(projection(backend(X)))), X)


@pytest.mark.parametrize("n_components", [0, 6, 1.5, -0.1, "two", None])
def test_an_invalid_number_of_components_is_an_error(n_components, X, backend):
    with pytest.raises(InputError, match=r"must be a share of the variance in \(0, 1\) or an integer from 1 to 5") as e:
        fit_pca(backend(X), n_components)

    assert e.value.code == "invalid_pca"
    assert e.value.fields["value"] == n_components


def test_a_share_of_the_variance_of_sparse_rows_is_an_error(X):
    with pytest.raises(InputError, match="not supported for sparse rows; use a number of components") as e:
        fit_pca(sp.csr_array(X), 0.9)

    assert e.value.code == "invalid_pca"
