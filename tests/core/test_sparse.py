import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

from fiedler.core import sparse
from fiedler.core.arrays import to_numpy
from fiedler.errors import InputError


@pytest.fixture
def triplets():
    rows, columns = np.array([0, 2, 2, 0, 3]), np.array([1, 0, 3, 1, 3])
    return rows, columns, np.array([1.0, 2.0, 0.0, 0.5, -1.0])


def dense(S):
    return sparse.to_scipy(S).toarray()


def test_repeated_triplets_are_summed_and_zeros_stay_stored(triplets, backend):
    S = sparse.from_coo(*map(backend, triplets), (4, 4))

    assert_allclose(dense(S), [[0, 1.5, 0, 0], [0, 0, 0, 0], [2, 0, 0, 0], [0, 0, 0, -1]])
    assert sparse.csr_parts(S)[0].shape == (4,)
    assert_array_equal(to_numpy(sparse.row_indices(S)), [0, 2, 2, 3])


def test_index_arrays_are_int32(triplets, backend):
    _, indices, indptr = sparse.csr_parts(sparse.from_coo(*map(backend, triplets), (4, 4)))

    assert "int32" in str(indices.dtype)
    assert "int32" in str(indptr.dtype)


def test_operations_equal_dense_algebra(triplets, backend, rng):
    S = sparse.from_coo(*map(backend, triplets), (4, 4))
    data = sparse.csr_parts(S)[0]  # NumPy for a back end without sparse matrices
    D = dense(S)
    left, right = rng.uniform(1, 2, 4), rng.uniform(1, 2, 4)
    convert = np.asarray if isinstance(data, np.ndarray) else backend
    scaled = sparse.scale_rows_columns(S, convert(left), convert(right))

    assert_allclose(dense(scaled), left[:, None] * D * right[None, :])
    assert_allclose(dense(sparse.add_diagonal(S, convert(left))), D + np.diag(left))
    assert_allclose(to_numpy(sparse.row_sums(S)), D.sum(axis=1))
    assert_allclose(to_numpy(sparse.diagonal(S)), np.diag(D))
    assert_allclose(dense(sparse.filter_entries(S, data > 0)), np.where(D > 0, D, 0))


def test_a_product_has_the_library_of_the_dense_factor(triplets, backend, rng):
    S = sparse.from_coo(*map(backend, triplets), (4, 4))
    X = rng.normal(size=(4, 3)).astype(np.float32)

    product = sparse.matmul(sparse.with_data(S, sparse.csr_parts(S)[0] * 1), backend(X.astype(np.float64)))

    assert type(product) is type(backend(X))
    assert_allclose(to_numpy(product), dense(S) @ X, rtol=1e-6)


def test_conversion_to_a_back_end_and_back_changes_nothing(backend):
    S = sp.csr_array(np.array([[0.0, 1.0], [2.0, 0.0]], dtype=np.float32))

    back = sparse.to_scipy(sparse.from_scipy(S, backend(np.zeros(1, dtype=np.float32))))

    assert back.dtype == np.float32
    assert_array_equal(back.toarray(), S.toarray())


def test_a_matrix_and_an_array_of_different_precision_are_an_error(triplets, backend):
    S = sparse.from_coo(*map(backend, triplets), (4, 4))
    if isinstance(sparse.csr_parts(S)[0], np.ndarray):
        pytest.skip("SciPy multiplies any precision")

    with pytest.raises(InputError, match="convert both to one library and one dtype") as caught:
        sparse.matmul(S, backend(np.zeros((4, 2), dtype=np.float32)))

    assert caught.value.code == "mixed_libraries"
