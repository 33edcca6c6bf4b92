"""The smallest eigenpairs of a symmetric matrix, with residuals, on any back end; and those of A v = λ B v.

``chebyshev`` is the solver for graphs: a block of vectors is filtered by a Chebyshev polynomial that is small on the
unwanted part [cut, upper] of the spectrum and grows fast below it, then orthogonalised and rotated onto Ritz vectors
(Zhou & Saad 2007). It needs only products, QR and a small eigenproblem, so the same code runs on NumPy, torch and CuPy.
As a block method it finds repeated eigenvalues, and the null space of a graph, one vector per component, is
supplied exactly and projected out. ``arpack`` (Lanczos), ``lobpcg`` and ``shift_invert`` (Lanczos with a sparse LU
factorisation) are those of SciPy. ``auto`` uses ``shift_invert`` if the filter stalls: graphs on which a random walk
mixes slowly, such as curves and surfaces, are those whose factors stay sparse. Where many eigenvalues are zero up to
rounding, as in a graph whose weights underflow, neither converges, and a matrix of moderate size is solved by LAPACK.
The methods are in `solvers`.

References
----------
Y. Zhou, Y. Saad, "A Chebyshev-Davidson algorithm for large symmetric eigenproblems", SIAM J. Matrix Anal. 29, 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from .._foreign_warnings import ignore_foreign_warnings
from .._records import EigenResult
from .._typing import MatrixLike, RandomState
from .._validation import (
    Check,
    as_array,
    check_int,
    check_positive,
    check_seed,
    choose,
    integer,
    is_foreign,
    is_sparse_tensor,
    none_or,
    one_of,
)
from ..errors import InputError, NotConvergedWarning, NotEnoughMemoryError, shown, warn
from .arrays import Array, asarray_like, eps, fix_signs, namespace, to_numpy
from .linear import cholesky
from .solvers import (
    EIGEN_SOLVERS,
    N_GUARD_VECTORS,
    SEEDED_RESTARTS,
    EigenProblem,
    fits_lobpcg,
    largest_residual,
    rayleigh_quotients,
)
from .sparse import csr_parts, diagonal, is_nearly_dense, is_sparse, matmul, row_sums, to_dense, to_scipy, with_data

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
        message = "the matrix is a sparse tensor that is not in CSR format"
        raise InputError(message, "use matrix.to_sparse_csr()", code="sparse_tensor")
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
    """Bound the largest eigenvalue of a symmetric operator tightly: the Ritz value of Lanczos plus its residual."""
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
        tridiagonal = np.diag(diagonals) + np.diag(off_diagonals, 1) + np.diag(off_diagonals, -1)
        values, vectors = np.linalg.eigh(tridiagonal)
        value, residual = float(values[-1]), length * abs(float(vectors[-1, -1]))  # of the largest Ritz pair
        if residual <= tol * abs(value) or step + 1 == start.shape[0]:
            break
        vector = image / length
        off_diagonals.append(length)
        basis.append(vector)
    return value + residual


def widest_gap(values: np.ndarray) -> int:
    """Return the number of ascending values, at least one, before the widest gap between two of them."""
    return len(values) if len(values) < 2 else int(np.argmax(np.diff(values))) + 1


LAPACK_UP_TO = 5000  # rows; up to there LAPACK solves matrices with slow products, and those that no iteration solves
SLOW_PRODUCTS_FROM = 0.1  # share of stored entries from which products take about as long as LAPACK
FACTORS_FILL_UP_FROM = 0.01  # share of stored entries from which LAPACK is faster than LU factors
MAX_STALLED_ROUNDS = 15  # rounds after which "auto" considers the Chebyshev filter stalled
ROUNDING_UNITS = 50  # the smallest tolerance on a relative residual, in units of the machine epsilon

LaplacianKind: TypeAlias = Literal["symmetric", "combinatorial", "random_walk", "signed"]
Solution: TypeAlias = tuple[Array, int, str]  # vectors that span the wanted space, number of rounds, method
EigenSolver: TypeAlias = Literal["auto", "chebyshev", "dense", "lobpcg", "arpack", "shift_invert"]


@dataclass(frozen=True)
class SpectralForm:
    """A symmetric eigenproblem with bounds on its spectrum."""

    matrix: Any  # sparse matrix, array or LinearOperator
    upper: float
    lower: float = 0.0
    null_vectors: Callable[[int], Array] | None = None  # returns at most k orthonormal null vectors for an integer k
    row_scale: Array | None = None  # (n,), by which the rows of the eigenvectors are multiplied in the end


class HasSpectralForm(Protocol):
    """An object with Laplacians, such as :class:`fiedler.AffinityGraph`."""

    def spectral_form(self, kind: LaplacianKind) -> SpectralForm:
        """Return the eigenproblem of a Laplacian."""


def smallest_eigenpairs(
    graph_or_matrix: HasSpectralForm | SpectralForm | MatrixLike | spla.LinearOperator,
    k: int,
    *,
    kind: LaplacianKind | None = None,
    method: EigenSolver = "auto",
    tol: float = 1e-8,
    max_iter: int | None = None,
    random_state: RandomState = 0,
) -> EigenResult:
    """Compute the ``k`` smallest eigenpairs of the Laplacian of a graph, or of a symmetric matrix.

    Parameters
    ----------
    graph_or_matrix : AffinityGraph, sparse matrix, array, LinearOperator or SpectralForm
        A graph, for the eigenpairs of its Laplacian, or a symmetric matrix, for its own eigenpairs; a form is a matrix
        whose bounds or null vectors are known.
    k : int
        The number of eigenpairs.
    kind : {'symmetric', 'combinatorial', 'random_walk', 'signed'}, optional
        The Laplacian of a graph; default 'symmetric'. Vectors of 'random_walk' are D^-1/2 u for the unit vectors u
        of 'symmetric'.
    method : {'auto', 'chebyshev', 'dense', 'lobpcg', 'arpack', 'shift_invert'}, default='auto'
        'auto' is dense for up to 512 rows (5000 if at least a tenth of the entries is stored), otherwise Chebyshev. If
        that does not converge, it is followed by shift-invert, and up to 5000 rows by dense.
    tol : float, default=1e-8
        Bound on the residual ‖A u - λ u‖, relative to half the bound on the spectrum (1 for the normalised Laplacians),
        and never below what the precision of the matrix allows.
    max_iter : int, optional
        Maximum number of rounds; each solver has its own default.
    random_state : int, RandomState or None, default=0
        Random seed or generator of the first block of vectors.

    Returns
    -------
    EigenResult
        ``values`` ascending, ``vectors`` as columns, ``residuals``, ``iterations``, ``converged``, ``method``.

    Warns
    -----
    NotConvergedWarning
        If a residual exceeds the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> from fiedler import AffinityGraph
    >>> path = AffinityGraph.from_matrix(np.diag([1.0, 1.0, 1.0], 1) + np.diag([1.0, 1.0, 1.0], -1))
    >>> result = smallest_eigenpairs(path, 2, kind="combinatorial")
    >>> np.round(np.abs(result.values), 4)  # 2 - 2 cos(π j / 4)
    array([0.    , 0.5858])
    >>> np.round(result.vectors[:, 1], 3)  # the Fiedler vector
    array([ 0.653,  0.271, -0.271, -0.653])
    """
    k, tol = check_int(k, "k"), check_positive(tol, "tol")
    max_iter = None if max_iter is None else check_int(max_iter, "max_iter")
    form = _as_form(graph_or_matrix, kind)
    n = form.matrix.shape[0]
    if k > n:
        message = f"k={k} eigenpairs are more than the matrix has rows ({n})"
        raise InputError(message, f"choose at most {n}", code="too_many_eigenpairs", parameter="k", value=k, n_rows=n)
    empty = _empty_block(form)
    known = form.null_vectors(k) if form.null_vectors else empty
    bound = max(form.upper, -form.lower)
    # The scale of the weights becomes irrelevant; division by a power of two is exact.
    unit = math.ldexp(1.0, math.frexp(bound)[1]) if bound > 0 else 1.0
    lower, upper = form.lower / unit, form.upper / unit
    max_residual = max(tol, ROUNDING_UNITS * eps(empty)) * 0.5 * max(upper, -lower)
    problem = EigenProblem(
        _divide(form.matrix, unit), k - known.shape[1], known, lower, upper, max_residual, max_iter,
        check_seed(random_state),
    )  # fmt: skip
    return _finish(form, problem, unit, method, *_solve(problem, method))


EIGEN_CHECKS: dict[str, Check] = {  # of estimators with these parameters
    "eigen_solver": one_of(["auto", *EIGEN_SOLVERS]),
    "eigen_tol": check_positive,
    "eigen_max_iter": none_or(integer()),
}


def eigen_options(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator under their names in `smallest_eigenpairs`."""
    return {"method": estimator.eigen_solver, "tol": estimator.eigen_tol, "max_iter": estimator.eigen_max_iter}


def _divide(matrix: Any, unit: float) -> Any:
    if is_sparse(matrix):
        return with_data(matrix, csr_parts(matrix)[0] / unit)
    return matrix * (1 / unit)


def _as_form(source: Any, kind: str | None) -> SpectralForm:
    if isinstance(source, SpectralForm):
        return source
    if hasattr(source, "spectral_form"):
        return source.spectral_form(kind or "symmetric")
    if kind is not None:
        message = f"kind={kind!r} selects a Laplacian of a graph, but a matrix was given"
        hint = "omit kind for the eigenpairs of the matrix, or pass AffinityGraph.from_matrix(W)"
        raise InputError(message, hint, code="kind_needs_a_graph", parameter="kind", value=kind)
    matrix = as_symmetric(source)
    lower, upper = spectral_bounds(matrix)
    return SpectralForm(matrix, upper=upper, lower=lower)


def _empty_block(form: SpectralForm) -> Array:
    """Return an (n, 0) array of the library, device and dtype that the eigenvectors will have."""
    if form.null_vectors is not None:
        return form.null_vectors(0)
    if isinstance(form.matrix, spla.LinearOperator):
        return np.empty((form.matrix.shape[0], 0))
    data = csr_parts(form.matrix)[0] if is_sparse(form.matrix) else form.matrix
    return asarray_like(np.empty((form.matrix.shape[0], 0)), data, dtype=data.dtype)


def _solve(problem: EigenProblem, method: str) -> Solution:
    n = problem.matrix.shape[0]
    if problem.n_wanted == 0:
        return problem.known[:, :0], 0, "exact"
    if method != "auto":
        return *choose(EIGEN_SOLVERS, method, option="method", also=["auto"])(problem), method
    if n <= DENSE_UP_TO or _suits_lapack(problem, SLOW_PRODUCTS_FROM) or 4 * (problem.n_wanted + N_GUARD_VECTORS) > n:
        return *EIGEN_SOLVERS["dense"](problem), "dense"
    if not sp.issparse(problem.matrix):
        return *EIGEN_SOLVERS["chebyshev"](problem), "chebyshev"
    vectors, rounds = EIGEN_SOLVERS["chebyshev"](problem._replace(max_iter=problem.max_iter or MAX_STALLED_ROUNDS))
    residual = largest_residual(problem, vectors)
    if residual <= problem.tol:
        return vectors, rounds, "chebyshev"
    return _solve_stalled(problem, residual, (vectors, rounds, "chebyshev"))


def _solve_stalled(problem: EigenProblem, residual: float, filtered: Solution) -> Solution:
    """Solve by LU factors or by LAPACK what the filter did not; if neither can, return the smaller residual."""
    if _suits_lapack(problem, FACTORS_FILL_UP_FROM):
        with suppress(NotEnoughMemoryError):
            return *EIGEN_SOLVERS["dense"](problem), "dense"
    factorised = (*EIGEN_SOLVERS["shift_invert"](problem), "shift_invert")
    other_residual = largest_residual(problem, factorised[0])
    if other_residual > problem.tol and problem.matrix.shape[0] <= LAPACK_UP_TO:
        with suppress(NotEnoughMemoryError):
            return *EIGEN_SOLVERS["dense"](problem), "dense"
    return factorised if other_residual <= residual else filtered


def _suits_lapack(problem: EigenProblem, share: float) -> bool:
    """Whether a sparse matrix is of moderate size and has at least a share of its entries stored."""
    matrix = problem.matrix
    return is_sparse(matrix) and matrix.shape[0] <= LAPACK_UP_TO and is_nearly_dense(matrix, share)


def _finish(
    form: SpectralForm, problem: EigenProblem, unit: float, asked: str, vectors: Array, iterations: int, method: str
) -> EigenResult:
    """Compute eigenvalues and residuals, fix order and signs, and warn if the tolerance was missed."""
    xp = namespace(vectors)
    vectors = xp.concat([problem.known, vectors], axis=1)
    values, residuals = rayleigh_quotients(problem.matrix, vectors)
    order = xp.argsort(values, stable=True)
    values, residuals, vectors = values[order], residuals[order], xp.take(vectors, order, axis=1)
    converged = bool(xp.all(residuals <= problem.tol))
    if not converged:
        residual, tol = float(xp.max(residuals)) * unit, problem.tol * unit
        warn(
            f"{method} stopped after {iterations} iterations with a residual of {residual:.1e}, above the tolerance of "
            f"{tol:.1e}",
            "allow more iterations or a larger tolerance"
            + ("" if asked in ("auto", "shift_invert") else ", or use the solver 'shift_invert'"),
            category=NotConvergedWarning,
            method=method,
            max_iter=problem.max_iter or iterations,
            residual=residual,
            tol=tol,
        )
    if form.row_scale is not None:
        vectors = vectors * form.row_scale[:, None]
    return EigenResult(values * unit, fix_signs(vectors), residuals * unit, iterations, converged, method)


def generalized_eigenpairs(
    A: MatrixLike | spla.LinearOperator,
    B: MatrixLike | spla.LinearOperator,
    k: int,
    *,
    largest: bool = False,
    method: Literal["auto", "dense", "lobpcg"] = "auto",
    tol: float = 1e-8,
    max_iter: int | None = None,
    random_state: RandomState = 0,
) -> EigenResult:
    """Compute the ``k`` smallest (or largest) eigenpairs of A v = λ B v, for symmetric A and positive definite B.

    Parameters
    ----------
    A, B : array, sparse matrix or LinearOperator of shape (n, n)
    k : int
        The number of eigenpairs.
    largest : bool, default=False
        Compute the largest eigenpairs; the values are ascending nevertheless.
    method : {'auto', 'dense', 'lobpcg'}, default='auto'
        'dense' uses the Cholesky factor of B, on any back end; 'lobpcg' needs only products with A and B. 'auto' is
        dense for dense matrices and for up to 512 rows.
    tol, max_iter, random_state
        As in `smallest_eigenpairs`; the tolerance is relative to the largest ``|λ|`` computed and ‖Bv‖.

    Returns
    -------
    EigenResult
        Vectors with v'Bv = 1; residuals ‖Av - λBv‖.

    Warns
    -----
    NotConvergedWarning
        If a residual exceeds the tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> result = generalized_eigenpairs(np.diag([1.0, 6.0]), np.diag([1.0, 2.0]), 2)
    >>> result.values
    array([1., 3.])
    """
    left, right = as_symmetric(A), as_symmetric(B)
    n, k, tol = left.shape[0], check_int(k, "k"), check_positive(tol, "tol")
    if right.shape != (n, n) or k > n:
        message = f"A and B must have the same shape and at least k={k} rows; got {left.shape} and {right.shape}"
        raise InputError(message, code="wrong_shape")
    is_operator = [isinstance(matrix, spla.LinearOperator) or is_sparse(matrix) for matrix in (left, right)]
    if method == "auto":
        method = "lobpcg" if any(is_operator) and n > DENSE_UP_TO else "dense"
    if method == "lobpcg" and not fits_lobpcg(k + N_GUARD_VECTORS, n):
        method = "dense"
    solve = choose({"dense": _generalized_dense, "lobpcg": _generalized_lobpcg}, method, option="method", also=["auto"])
    vectors, iterations = solve(left, right, k, largest, tol, max_iter, check_seed(random_state))
    xp = namespace(vectors)
    product_a, product_b = matmul(left, vectors), matmul(right, vectors)
    lengths = xp.sqrt(xp.sum(vectors * product_b, axis=0))
    vectors, product_a, product_b = (M / lengths[None, :] for M in (vectors, product_a, product_b))
    values = xp.sum(vectors * product_a, axis=0)
    order = xp.argsort(values, stable=True)
    residuals = xp.sqrt(xp.sum((product_a - product_b * values[None, :]) ** 2, axis=0))
    lengths_b = xp.sqrt(xp.sum(product_b**2, axis=0))
    max_residuals = max(tol, ROUNDING_UNITS * eps(vectors)) * float(xp.max(xp.abs(values))) * lengths_b
    converged = method == "dense" or bool(xp.all(residuals <= max_residuals))
    if not converged:
        residual = float(xp.max(residuals))
        warn(
            f"{method} stopped after {iterations} iterations with a residual of {residual:.1e}",
            "raise max_iter or tol, or use method='dense'",
            category=NotConvergedWarning,
            method=method,
            max_iter=max_iter or iterations,
            residual=residual,
        )
    vectors = fix_signs(xp.take(vectors, order, axis=1))
    return EigenResult(values[order], vectors, residuals[order], iterations, converged, method)


def _generalized_dense(
    A: Any, B: Any, k: int, largest: bool, tol: float, max_iter: int | None, rng: np.random.RandomState
) -> tuple[Array, int]:
    """Factorise B = CC', solve the ordinary problem C^-1 A C^-T y = λ y, and return v = C^-T y."""
    A, B = _densify(A), _densify(B)
    xp = namespace(A)
    factor = cholesky(B)
    if factor is None:
        raise InputError(
            "B is not positive definite", "add a small ridge to its diagonal", code="not_positive_definite"
        )
    half = xp.linalg.solve(factor, A)
    reduced = xp.linalg.solve(factor, half.T)
    _, rotated = xp.linalg.eigh(0.5 * (reduced + reduced.T))
    chosen = rotated[:, -k:] if largest else rotated[:, :k]
    return xp.linalg.solve(factor.T, chosen), 0


def _densify(matrix: Any) -> Array:
    if isinstance(matrix, spla.LinearOperator) or sp.issparse(matrix):
        return np.asarray(matrix @ np.eye(matrix.shape[0], dtype=matrix.dtype))
    return to_dense(matrix) if is_sparse(matrix) else matrix


def _generalized_lobpcg(
    A: Any, B: Any, k: int, largest: bool, tol: float, max_iter: int | None, rng: np.random.RandomState
) -> tuple[Array, int]:
    start = rng.standard_normal((A.shape[0], k + N_GUARD_VECTORS))
    with ignore_foreign_warnings():  # convergence is judged by the residuals, above
        values, vectors, history = spla.lobpcg(
            A, start, B=B, tol=tol, largest=largest, maxiter=max_iter or 1000, retResidualNormsHistory=True
        )
    order = np.argsort(values)
    return to_numpy(vectors)[:, order[-k:] if largest else order[:k]], len(history)
