import numpy as np
import pytest
from numpy.testing import assert_allclose

from fiedler.core.arrays import to_numpy
from fiedler.core.linear import cholesky, cholesky_or_nan, conjugate_gradient, invert_lower_triangular, least_squares
from fiedler.errors import NotConvergedWarning


@pytest.fixture
def system(rng):
    A = rng.normal(size=(40, 40))
    A = A @ A.T + np.diag(rng.uniform(1, 100, 40))
    B = rng.normal(size=(40, 3))
    B[:, 1] = 0  # a column with nothing to solve
    return A, B


def test_conjugate_gradients_solve_every_column(system, backend):
    A, B = system
    matrix = backend(A)

    result = conjugate_gradient(lambda X: matrix @ X, backend(B), diagonal=backend(np.diag(A).copy()), tol=1e-12)

    assert result.converged
    assert_allclose(to_numpy(result.solution), np.linalg.solve(A, B), atol=1e-10)


def test_not_converging_is_a_warning(system):
    A, B = system
    with pytest.warns(NotConvergedWarning, match="raise max_iter or tol") as caught:
        result = conjugate_gradient(lambda X: A @ X, B, diagonal=np.diag(A), max_iter=2)
    assert not result.converged
    assert result.iterations == 2
    assert caught[0].message.code == "not_converged"
    assert caught[0].message.fields["max_iter"] == 2


def test_cholesky_factors_exist_for_positive_definite_matrices_only(rng, backend):
    positive = np.stack([(A := rng.normal(size=(6, 9))) @ A.T for _ in range(4)])
    indefinite = positive - 100 * np.eye(6)

    factors = to_numpy(cholesky(backend(positive)))

    assert_allclose(factors @ np.swapaxes(factors, 1, 2), positive)
    assert cholesky(backend(indefinite)) is None
    assert np.isnan(to_numpy(cholesky_or_nan(backend(indefinite)))[..., 0, 0]).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_triangular_matrices_are_inverted(rng, backend, dtype):
    lower = np.linalg.cholesky([(A := rng.normal(size=(6, 9))) @ A.T for _ in range(4)]).astype(dtype)
    inverses = to_numpy(invert_lower_triangular(backend(lower)))
    assert inverses.dtype == dtype
    assert_allclose(inverses @ lower, np.broadcast_to(np.eye(6), (4, 6, 6)), atol=1e-4 if dtype == "float32" else 1e-12)


@pytest.mark.parametrize("shape", [(50, 12), (12, 50)])
@pytest.mark.parametrize("damp", [0.0, 0.7])
def test_least_squares_find_the_shortest_solution_as_lapack_does(rng, backend, shape, damp):
    A, B = rng.normal(size=shape), rng.normal(size=(shape[0], 3))
    B[:, 1] = 0  # a column with nothing to solve
    matrix = backend(A)
    result = least_squares(lambda X: matrix @ X, lambda R: matrix.T @ R, backend(B), damp=damp, tol=1e-12)
    stacked = np.vstack([A, np.sqrt(damp) * np.eye(shape[1])]), np.vstack([B, np.zeros((shape[1], 3))])
    assert result.converged
    assert_allclose(to_numpy(result.solution), np.linalg.lstsq(*stacked)[0], atol=1e-8)


def test_least_squares_of_dependent_columns(rng):
    A = rng.normal(size=(30, 4)) @ rng.normal(size=(4, 10))
    B = rng.normal(size=(30, 2))
    result = least_squares(lambda X: A @ X, lambda R: A.T @ R, B, tol=1e-10)
    assert_allclose(result.solution, np.linalg.pinv(A) @ B, atol=1e-8)
