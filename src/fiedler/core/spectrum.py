"""Symmetric matrices before they are solved: validation, and bounds on the spectrum."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from .._validation import as_array, is_foreign, is_sparse_tensor
from ..errors import InputError, shown
from .backend import Array, namespace
from .solvers import SEEDED_RESTARTS
from .sparse import csr_parts, diagonal, is_sparse, row_sums, to_scipy, with_data

DENSE_UP_TO = 512  # rows; up to there LAPACK is faster, and it needs no tolerance
SYMMETRY_TOL = 1e-6  # largest |A - A'| of a matrix that is considered symmetric, relative to its largest entry


def as_symmetric(source: Any) -> Any:
    """Validate a square, finite, symmetric matrix: an array, CSR, or an operator (a small one is converted)."""
    if isinstance(source, spla.LinearOperator):
        matrix = source if source.shape[0] > DENSE_UP_TO else source @ np.eye(source.shape[1])
    elif sp.issparse(source):
        matrix = to_scipy(source) if source.ndim == 2 else source
    else:
        matrix = source if is_sparse(source) or is_foreign(source) else as_array(source)
    if matrix is None:
        raise InputError(f"the matrix must be an array of numbers; got {shown(source)}", code="wrong_shape")
    if not is_sparse(matrix) and is_sparse_tensor(matrix):
        raise InputError(
            "the matrix is a sparse tensor that is not in CSR format",
            "use matrix.to_sparse_csr()",
            code="sparse_tensor",
        )
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] == 0:
        raise InputError(
            f"the matrix must be square and non-empty; got shape {tuple(matrix.shape)}", code="wrong_shape"
        )
    return matrix if isinstance(matrix, spla.LinearOperator) else _finite_floats(matrix)


def _finite_floats(matrix: Any) -> Any:
    data = csr_parts(matrix)[0] if is_sparse(matrix) else matrix
    xp = namespace(data)
    if not xp.isdtype(data.dtype, ("real floating", "integral", "bool")):
        raise InputError(f"the matrix must be real; got dtype {data.dtype}", code="wrong_dtype")
    if not xp.isdtype(data.dtype, "real floating"):
        data = xp.astype(data, xp.float64)
        matrix = with_data(matrix, data) if is_sparse(matrix) else data
    if not bool(xp.all(xp.isfinite(data))):
        raise InputError("the matrix contains NaN or infinity", "remove or fill those entries first", code="not_finite")
    if not _is_symmetric(matrix):
        raise InputError("the matrix is not symmetric", "pass (A + A.T) / 2 to symmetrise it", code="not_symmetric")
    return matrix


def _is_symmetric(matrix: Any) -> bool:
    """Whether a matrix is symmetric up to rounding; not checked for a sparse matrix on a device."""
    if is_sparse(matrix) and not sp.issparse(matrix):
        return True
    difference = matrix - matrix.T
    entries, gaps = (matrix.data, difference.data) if sp.issparse(matrix) else (matrix, difference)
    xp = namespace(entries)
    largest = lambda values: float(xp.max(xp.abs(values))) if 0 not in values.shape else 0.0  # noqa: E731
    return largest(gaps) <= SYMMETRY_TOL * largest(entries)


def spectral_bounds(matrix: Any) -> tuple[float, float]:
    """Bound a symmetric spectrum from below and above: by Gershgorin discs, or a few Lanczos steps for an operator."""
    if isinstance(matrix, spla.LinearOperator):
        v0 = np.random.RandomState(0).standard_normal(matrix.shape[0]).astype(matrix.dtype)
        ends = spla.eigsh(matrix, k=2, which="BE", v0=v0, tol=1e-2, return_eigenvectors=False, **SEEDED_RESTARTS)
        margin = 0.05 * float(np.max(np.abs(ends)))
        return float(np.min(ends)) - margin, float(np.max(ends)) + margin
    if is_sparse(matrix):
        data = csr_parts(matrix)[0]
        abs_sums = row_sums(with_data(matrix, namespace(data).abs(data)))
        centers = diagonal(matrix)
    else:
        xp = namespace(matrix)
        abs_sums, centers = xp.sum(xp.abs(matrix), axis=1), xp.linalg.diagonal(matrix)
    xp = namespace(abs_sums)
    radii = abs_sums - xp.abs(centers)
    return float(xp.min(centers - radii)), float(xp.max(centers + radii))


def largest_eigenvalue(
    product: Callable[[Array], Array], start: Array, *, tol: float = 1e-6, n_steps: int = 100
) -> float:
    """Return a tight upper bound of the largest eigenvalue of a symmetric operator, by the Lanczos method.

    The bound is the Ritz value plus its residual.

    Parameters
    ----------
    product : callable
        v -> A v for arrays of shape (n, 1).
    start : array of shape (n, 1)
        A random vector.
    tol : float, default=1e-6
        Relative residual at which to stop.
    n_steps : int, default=100
        Maximum number of steps, each of which stores a vector for orthogonalisation.
    """
    xp = namespace(start)
    vector = start / xp.sqrt(xp.sum(start**2))
    basis = [vector]
    diagonals: list[float] = []
    off_diagonals: list[float] = []
    for step in range(min(n_steps, start.shape[0])):
        image = product(vector)
        diagonals.append(float(xp.sum(vector * image)))
        for _ in range(2):  # a single orthogonalisation leaves rounding errors
            for known in basis:
                image = image - known * xp.sum(known * image)
        length = float(xp.sqrt(xp.sum(image**2)))
        value, residual = _largest_ritz(diagonals, off_diagonals, length)
        if residual <= tol * abs(value) or step + 1 == start.shape[0]:
            break
        vector = image / length
        off_diagonals.append(length)
        basis.append(vector)
    return value + residual


def _largest_ritz(diagonals: list[float], off_diagonals: list[float], length: float) -> tuple[float, float]:
    """Return the largest eigenvalue of the tridiagonal Lanczos matrix and the residual of its vector."""
    tridiagonal = np.diag(diagonals) + np.diag(off_diagonals, 1) + np.diag(off_diagonals, -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    return float(values[-1]), length * abs(float(vectors[-1, -1]))


def widest_gap(values: np.ndarray) -> int:
    """Return the number of ascending values, at least one, before the widest gap between two of them.

    Examples
    --------
    >>> widest_gap(np.array([0.01, 0.02, 0.5, 0.6]))
    2
    """
    return len(values) if len(values) < 2 else int(np.argmax(np.diff(values))) + 1
